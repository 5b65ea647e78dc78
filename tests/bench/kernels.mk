# SPDX-License-Identifier: Apache-2.0
# Complete steps as kernel calls: make tests/bench/kernels && builddir=. tests/bench/kernels resnet20 bf16 2 128 9 -v
EXTRA_PROGRAMS += tests/bench/kernels
tests_bench_kernels_SOURCES = tests/bench/kernels.c tests/bench/parts/caches.c tests/bench/parts/caches.h
tests_bench_kernels_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
tests_bench_kernels_LDADD = libgraph.la
