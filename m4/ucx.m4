# SPDX-License-Identifier: Apache-2.0
# AX_DPT_UCX: --with-ucx; the transport between machines.
AC_DEFUN([AX_DPT_UCX], [
  AC_ARG_WITH([ucx], [AS_HELP_STRING([--with-ucx=auto|no], [UCX transport between machines])], [], [with_ucx=auto])
  have_ucx=no ucx_reason=
  AS_IF([test "$with_ucx" = no], [ucx_reason="--with-ucx=no"],
    [PKG_CHECK_MODULES([UCX], [ucx >= 1.10], [have_ucx=yes], [ucx_reason="ucx >= 1.10 not found"])])
  AM_CONDITIONAL([HAVE_UCX], [test $have_ucx = yes])
])
