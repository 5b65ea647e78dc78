# SPDX-License-Identifier: Apache-2.0
# AX_DPT_STATIC: --enable-static-program links dptrack with static libraries alone. libcurl, which it opens by name otherwise, is
# linked with it; it has no other library that is opened by name. musl gives threads the stack that the program's header names
# (128 KiB without one); glibc's is that of the shell's limit, 8 MiB.
AC_DEFUN([AX_DPT_STATIC], [
  AC_ARG_ENABLE([static-program],
    [AS_HELP_STRING([--enable-static-program], [link dptrack with static libraries alone])], [], [enable_static_program=no])
  AS_IF([test "$enable_static_program" = yes], [
    AC_DEFINE([STATIC_PROGRAM], [1], [dptrack is one file that opens no libraries.])
    STATIC_FLAGS="-all-static -Wl,-z,stack-size=8388608" STATIC_LIBS=$CURL_LIBS CFLAGS="$CFLAGS -fPIE"
  ])
  AC_SUBST([STATIC_FLAGS])
  AC_SUBST([STATIC_LIBS])
])
