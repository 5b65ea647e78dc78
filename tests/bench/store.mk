# Speed of the store: make tests/bench/store && tests/bench/store
EXTRA_DIST += tests/bench/soak tests/bench/startup
EXTRA_PROGRAMS += tests/bench/store
tests_bench_store_SOURCES = tests/bench/store.c tests/bench/rows.h
tests_bench_store_LDADD = libwebstore.la -lm
# of a server's ingest: make tests/bench/ingest && tests/bench/ingest
EXTRA_PROGRAMS += tests/bench/ingest
tests_bench_ingest_SOURCES = tests/bench/ingest.c tests/bench/rows.h
tests_bench_ingest_LDADD = libtracker.la
