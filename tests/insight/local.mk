# SPDX-License-Identifier: Apache-2.0
# Statistics of runs: compared with other libraries, random draws and theory; coverage of intervals.
cmocka_tests += tests/insight/batch_test tests/insight/learning_test tests/insight/range_test tests/insight/spans_test tests/insight/statistics_test tests/insight/intervals_test tests/insight/tree_test
tests_insight_statistics_test_LDADD = libinsight.la $(CMOCKA_LIBS)
tests_insight_learning_test_LDADD = libinsight.la $(CMOCKA_LIBS)
tests_insight_batch_test_LDADD = libinsight.la $(CMOCKA_LIBS)
tests_insight_range_test_LDADD = libinsight.la $(CMOCKA_LIBS)
tests_insight_tree_test_LDADD = libinsight.la $(CMOCKA_LIBS)
tests_insight_intervals_test_SOURCES = tests/insight/intervals_test.c tests/insight/simulate.c tests/insight/simulate.h
tests_insight_intervals_test_LDADD = libinsight.la $(CMOCKA_LIBS)
insight_tests = tests/insight/recorded.py tests/insight/best.py tests/insight/why.py tests/insight/bench_compare.py tests/insight/diagnosis.py tests/insight/doctor.py tests/insight/find.py tests/insight/trace.py tests/insight/profile.py tests/insight/spike.py tests/insight/watch.py
TESTS += $(insight_tests)
CHECK_EXTRA += tests/insight/perfetto.py
EXTRA_DIST += tests/insight/reduced.py tests/insight/recorded
EXTRA_DIST += tests/insight/traced.py tests/insight/perfetto.py tests/insight/perfetto.mjs
EXTRA_DIST += tests/insight/reference/make_flops.py tests/insight/reference/flops.json
EXTRA_DIST += $(insight_tests) tests/insight/student_table.py tests/insight/student_table.def

# Coverage of intervals: of simulated runs (make tests/bench/insight/intervals && tests/bench/insight/intervals), and
# of real ones.
EXTRA_DIST += tests/bench/why tests/bench/insight/find_lr tests/bench/insight/traced tests/bench/insight/turns.py tests/bench/insight/watch
EXTRA_DIST += tests/bench/insight/README.md tests/bench/insight/doctor tests/bench/insight/plan tests/bench/insight/roof tests/bench/insight/system tests/bench/insight/waterfall tests/bench/parts/groups.py tests/bench/parts/jpeg.py tests/bench/parts/others.py tests/bench/parts/results.py
EXTRA_PROGRAMS += tests/bench/insight/intervals
tests_bench_insight_intervals_SOURCES = tests/bench/insight/intervals.c tests/insight/simulate.c tests/insight/simulate.h
tests_bench_insight_intervals_LDADD = libinsight.la
