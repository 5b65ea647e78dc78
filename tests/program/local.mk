# SPDX-License-Identifier: Apache-2.0
# The number of loading threads, chosen after steps were measured; idle times of pipelines, and their memory.
cmocka_tests += tests/program/pipeline_test tests/program/workers_test

# dptrain with hooks, from the same objects: hooks.c wraps what tests/train/helper.py's variables name.
check_PROGRAMS += tests/dptrain
hooked = pass_layout schedule_make_turns host_program_fill sample_loop exec_new exec_begin exec_end \
	nonfinite_search_check loader_open dataset_read machine_available_bytes child_run
tests_dptrain_SOURCES = $(dptrain_SOURCES) tests/program/hooks.c
tests_dptrain_LDADD = $(dptrain_LDADD)
tests_dptrain_LDFLAGS = $(AM_LDFLAGS) $(hooked:%=-Wl,--wrap=%)
