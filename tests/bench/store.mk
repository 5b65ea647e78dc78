# Speed of the store: make tests/bench/store && tests/bench/store
EXTRA_DIST += tests/bench/soak
EXTRA_PROGRAMS += tests/bench/store
tests_bench_store_SOURCES = tests/bench/store.c
tests_bench_store_LDADD = libwebstore.la -lm
