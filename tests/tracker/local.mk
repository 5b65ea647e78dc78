# SPDX-License-Identifier: Apache-2.0
# The tracking library: its file format, its behaviour under faults, its upload to a server.
cmocka_tests += tests/tracker/base_test tests/tracker/event_test tests/tracker/run_test tests/tracker/system_test
tests_tracker_base_test_LDFLAGS = $(AM_LDFLAGS) -static -Wl,--wrap=open
tests_tracker_base_test_LDADD = libtrackbase.la $(CMOCKA_LIBS)
tests_tracker_event_test_LDADD = libtracker.la $(CMOCKA_LIBS)
tests_tracker_run_test_LDADD = libtracker.la $(CMOCKA_LIBS)
tests_tracker_system_test_LDADD = libtracker.la -lm $(CMOCKA_LIBS)

check_PROGRAMS += tests/tracker/event_fuzz tests/tracker/object_tool
tests_tracker_object_tool_LDADD = libobject.la libtrackbase.la
TESTS += tests/tracker/event_fuzz
tests_tracker_event_fuzz_LDADD = libtracker.la

# record drives the library for tests in Python; failio.so is preloaded into it.
check_PROGRAMS += tests/tracker/record
tests_tracker_record_LDADD = libtracker.la
check_LTLIBRARIES += tests/tracker/failio.la
tests_tracker_failio_la_SOURCES = tests/tracker/failio.c
tests_tracker_failio_la_CFLAGS = $(WARN_CFLAGS)
tests_tracker_failio_la_LDFLAGS = -module -avoid-version -rpath /nowhere

tracker_scripts = tests/tracker/object.py tests/tracker/object_google.py tests/tracker/object_serve.py tests/tracker/run_test.py tests/tracker/fault_test.py tests/tracker/uplink_test.py \
	tests/tracker/installed.sh tests/tracker/manual.sh
dist_check_SCRIPTS += $(tracker_scripts) tests/tracker/object_moto.py tests/tracker/object_google_client.py tests/tracker/tensorboard_reader.py
TESTS += $(tracker_scripts)
CHECK_EXTRA += tests/tracker/object_moto.py tests/tracker/object_google_client.py tests/tracker/tensorboard_reader.py
EXTRA_DIST += tests/tracker/gcsserver.py tests/tracker/journal.py tests/tracker/parallel.py tests/tracker/twenty_lines.c tests/tracker/wire.py

noinst_PROGRAMS += tests/bench/log
tests_bench_log_SOURCES = tests/bench/log.c
tests_bench_log_LDADD = libtracker.la
