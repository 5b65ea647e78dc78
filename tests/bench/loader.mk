# SPDX-License-Identifier: Apache-2.0
# tests/bench/loader: from JPEG files to batches, compared with PyTorch's DataLoader.
EXTRA_PROGRAMS += tests/bench/loader_rate
tests_bench_loader_rate_SOURCES = tests/bench/loader_rate.c
tests_bench_loader_rate_LDADD = libtrainer.la libtrackbase.la
EXTRA_DIST += tests/bench/loader tests/data/make-imagefolder
