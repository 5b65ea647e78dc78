# SPDX-License-Identifier: Apache-2.0
# Speed of the store: make tests/bench/store && tests/bench/store
EXTRA_DIST += tests/bench/soak tests/bench/startup
EXTRA_PROGRAMS += tests/bench/store
tests_bench_store_SOURCES = tests/bench/store.c tests/bench/parts/rows.h
tests_bench_store_LDADD = libwebstore.la -lm
# Speed of a server's ingest: make tests/bench/ingest && tests/bench/ingest
EXTRA_PROGRAMS += tests/bench/ingest
tests_bench_ingest_SOURCES = tests/bench/ingest.c tests/bench/parts/client.c tests/bench/parts/client.h tests/bench/parts/rows.h
tests_bench_ingest_LDADD = libtracker.la
# Speed with one run of very many series: make dptrack tests/bench/wide && tests/bench/wide
EXTRA_PROGRAMS += tests/bench/wide
tests_bench_wide_SOURCES = tests/bench/wide.c tests/bench/parts/client.c tests/bench/parts/client.h tests/bench/parts/rows.h
tests_bench_wide_LDADD = libtracker.la
# Speed with a folder of very many idle runs: make dptrack tests/bench/idle && tests/bench/idle
EXTRA_PROGRAMS += tests/bench/idle
tests_bench_idle_SOURCES = tests/bench/idle.c tests/bench/parts/client.c tests/bench/parts/client.h
tests_bench_idle_LDADD = libtracker.la
