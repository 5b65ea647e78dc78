# SPDX-License-Identifier: Apache-2.0
# AX_DPT_MPI: --with-mpi; the transport between machines for ranks that mpirun or srun starts.
AC_DEFUN([AX_DPT_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=auto|no], [Open MPI transport between machines])], [], [with_mpi=auto])
  have_mpi=no mpi_reason=
  AS_IF([test "$with_mpi" = no], [mpi_reason="--with-mpi=no"],
    [PKG_CHECK_MODULES([MPI], [ompi-c >= 4.0], [have_mpi=yes], [mpi_reason="ompi-c >= 4.0 not found"])])
  AM_CONDITIONAL([HAVE_MPI], [test $have_mpi = yes])
])
