# SPDX-License-Identifier: Apache-2.0
# Tests of web/store: one cmocka program per subject.
store_tests = tests/store/change_test tests/store/chunk_test tests/store/store_test tests/store/follow_test \
	tests/store/query_test tests/store/crash_test tests/store/full_test \
	tests/store/gc_test tests/store/limits_test tests/store/queue_test tests/store/tree_test tests/store/map_test \
	tests/store/grants_test
cmocka_tests += $(store_tests)
store_test_libs = libwebstore.la $(CMOCKA_LIBS) $(SQLITE_LIBS) -lm
store_test_helper = tests/store/helper.c tests/store/helper.h
tests_store_change_test_LDADD = $(store_test_libs)
tests_store_chunk_test_LDADD = $(store_test_libs)
tests_store_store_test_SOURCES = tests/store/store_test.c $(store_test_helper)
tests_store_store_test_LDADD = $(store_test_libs)
tests_store_follow_test_SOURCES = tests/store/follow_test.c $(store_test_helper)
tests_store_follow_test_LDADD = $(store_test_libs)
tests_store_query_test_SOURCES = tests/store/query_test.c $(store_test_helper)
tests_store_query_test_LDADD = $(store_test_libs)
tests_store_crash_test_SOURCES = tests/store/crash_test.c $(store_test_helper)
tests_store_crash_test_LDADD = $(store_test_libs)
tests_store_full_test_SOURCES = tests/store/full_test.c $(store_test_helper)
tests_store_full_test_LDADD = $(store_test_libs)
tests_store_limits_test_SOURCES = tests/store/limits_test.c $(store_test_helper)
tests_store_limits_test_LDADD = $(store_test_libs)
tests_store_queue_test_LDADD = $(store_test_libs)
tests_store_tree_test_LDADD = $(store_test_libs)
tests_store_map_test_LDADD = $(store_test_libs)
tests_store_grants_test_LDADD = $(store_test_libs)
tests_store_gc_test_SOURCES = tests/store/gc_test.c $(store_test_helper)
tests_store_gc_test_LDADD = $(store_test_libs)

# Stores of other versions; next.c is a program of the next one.
check_PROGRAMS += tests/store/next
tests_store_next_LDADD = $(store_test_libs)
EXTRA_DIST += tests/store/migrate.py tests/store/earlier.py
TESTS += tests/store/migrate.py

# Lists of runs compared with each run alone.
EXTRA_DIST += tests/store/lists.py
TESTS += tests/store/lists.py

# Points of ended runs as objects.
EXTRA_DIST += tests/store/archive.py
TESTS += tests/store/archive.py

# Rules of retention on disk and in an object store, with kills: 20 s.
EXTRA_DIST += tests/store/retention.py
CHECK_EXTRA += tests/store/retention.py
