# SPDX-License-Identifier: Apache-2.0
# tests/bench/storage: training data in their places, and the store's files.
EXTRA_PROGRAMS += tests/bench/storage/plain tests/bench/storage/plain_curl
tests_bench_storage_plain_SOURCES = tests/bench/storage/plain.c
tests_bench_storage_plain_curl_SOURCES = tests/bench/storage/plain_curl.c
tests_bench_storage_plain_curl_LDADD = libtrackbase.la
EXTRA_DIST += tests/bench/storage/bring tests/bench/storage/cloud tests/bench/storage/formats tests/bench/storage/formats_peer.py \
	tests/bench/storage/migrate tests/bench/storage/peer_sets.py tests/bench/storage/pieces.py tests/bench/storage/searches \
	tests/bench/storage/shaped tests/bench/storage/stores.py tests/bench/storage/swift tests/bench/storage/raw_samples
