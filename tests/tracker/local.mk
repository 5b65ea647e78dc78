# The tracking library: its file format, its behaviour under faults, its way to a server.
if HAVE_CMOCKA
tracker_tests = tests/tracker/event_test
check_PROGRAMS += $(tracker_tests)
TESTS += $(tracker_tests)
tests_tracker_event_test_SOURCES = tests/tracker/event_test.c
tests_tracker_event_test_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_tracker_event_test_LDADD = libtracker.la $(CMOCKA_LIBS)
endif
