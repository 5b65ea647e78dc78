# AX_DPT_MPI: --with-mpi; probed and reported, the transport of many CPU nodes is built on it.
AC_DEFUN([AX_DPT_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=auto|no], [MPI transport between CPU nodes])], [], [with_mpi=auto])
  have_mpi=no mpi_reason=
  AS_IF([test "$with_mpi" = no], [mpi_reason="--with-mpi=no"],
    [PKG_CHECK_EXISTS([ompi-c], [have_mpi=yes], [mpi_reason="no ompi-c.pc (Debian: libopenmpi-dev)"])])
])
