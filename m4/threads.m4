# SPDX-License-Identifier: Apache-2.0
# AX_DPT_THREADS: pthreads for everything; OpenMP (OPENMP_CFLAGS) for the CPU module's own kernels,
# so that they share one thread pool with oneDNN's OpenMP build.
AC_DEFUN([AX_DPT_THREADS], [
  AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([POSIX threads are needed])])
  AC_OPENMP
])
