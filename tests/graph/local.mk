# SPDX-License-Identifier: Apache-2.0
# Placement and plans (plan_test), concurrent streams and turns (stream_test), waits order all accesses to memory
# (ordered_test; in full: for every model), stages (stages_test), executors (exec_test), runs that begin
# ahead on a device (ahead_test), results of the passes (pass_test), dumps compared with golden files (dump_test;
# regenerate with UPDATE_GOLDEN=1), random numbers (normal_test).
EXTRA_DIST += \
	tests/graph/golden/gpt-small.txt \
	tests/graph/golden/resnet18.params \
	tests/graph/golden/resnet18.txt \
	tests/graph/golden/resnet20.params \
	tests/graph/golden/resnet20.txt \
	tests/graph/golden/resnet20-shared.txt \
	tests/graph/golden/resnet34.params \
	tests/graph/golden/resnet50.params \
	tests/graph/golden/resnet50.txt

cmocka_tests += tests/graph/plan_test tests/graph/exec_test tests/graph/ahead_test tests/graph/stream_test tests/graph/ordered_test tests/graph/stages_test tests/graph/pass_test \
	tests/graph/dump_test tests/graph/leaves_test tests/graph/normal_test
graph_test_ordered = tests/graph/ordered.c tests/graph/ordered.h
tests_graph_ordered_test_SOURCES = tests/graph/ordered_test.c $(graph_test_ordered)
tests_graph_stream_test_SOURCES = tests/graph/stream_test.c $(graph_test_ordered)
tests_graph_ordered_test_LDADD = $(LDADD) $(JANSSON_LIBS) $(ZLIB_LIBS)
graph_test_net = tests/graph/net.c tests/graph/net.h
tests_graph_plan_test_SOURCES = tests/graph/plan_test.c $(graph_test_net)
tests_graph_pass_test_SOURCES = tests/graph/pass_test.c $(graph_test_net)
tests_graph_dump_test_SOURCES = tests/graph/dump_test.c $(graph_test_net)
