# SPDX-License-Identifier: Apache-2.0
# Collectives compared with Open MPI's and gloo's: tests/bench/comm/compare; many ranks on few cores:
# tests/bench/comm/ranks
EXTRA_DIST += tests/bench/comm/compare tests/bench/comm/ranks tests/bench/comm/gloo_allreduce.py
EXTRA_PROGRAMS += tests/bench/comm/bare_sum
tests_bench_comm_bare_sum_SOURCES = tests/bench/comm/bare_sum.c
tests_bench_comm_bare_sum_LDADD = -lpthread
if HAVE_MPI
EXTRA_PROGRAMS += tests/bench/comm/allreduce_mpi
tests_bench_comm_allreduce_mpi_SOURCES = tests/bench/comm/allreduce_mpi.c
tests_bench_comm_allreduce_mpi_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
tests_bench_comm_allreduce_mpi_LDADD = $(MPI_LIBS)
endif
