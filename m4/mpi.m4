# AX_DPT_MPI: --with-mpi; probed and reported, the transport between CPU nodes stands on it.
AC_DEFUN([AX_DPT_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=auto|no], [MPI transport between CPU nodes])], [], [with_mpi=auto])
  have_mpi=no mpi_reason=
  AS_IF([test "$with_mpi" = no], [mpi_reason="--with-mpi=no"],
    [PKG_CHECK_EXISTS([ompi-c], [mpi_reason="Open MPI found; the transport is not part of this release"],
      [mpi_reason="no ompi-c.pc (Debian: libopenmpi-dev)"])])
])
