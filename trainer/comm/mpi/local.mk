# SPDX-License-Identifier: Apache-2.0
# The mpi module: messages between machines on Open MPI.
EXTRA_DIST += trainer/comm/mpi/mpi_module.c

if HAVE_MPI
pkglib_LTLIBRARIES += dptrain_mpi.la
dptrain_mpi_la_SOURCES = trainer/comm/mpi/mpi_module.c
dptrain_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
dptrain_mpi_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
dptrain_mpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined -Wl,-z,defs -Wl,--exclude-libs,ALL \
	-export-symbols-regex '^dptrain_link_v4$$'
dptrain_mpi_la_LIBADD = libtrackbase.la $(MPI_LIBS)
endif
