# SPDX-License-Identifier: Apache-2.0
# AX_DPT_SANITIZERS: --enable-sanitizers builds with the address and undefined-behaviour sanitizers, =thread with the one for
# races, =fuzzer (clang) with the first two and with coverage, so that the programs of tests/fuzz look for new inputs.
AC_DEFUN([AX_DPT_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers@<:@=yes|thread|fuzzer@:>@], [build with ASan and UBSan, TSan, or for libFuzzer])],
    [], [enable_sanitizers=no])
  dpt_asan="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
  AS_CASE([$enable_sanitizers],
    [yes], [SANITIZER_FLAGS=$dpt_asan],
    [thread], [SANITIZER_FLAGS="-fsanitize=thread -fno-omit-frame-pointer"],
    [fuzzer], [SANITIZER_FLAGS="$dpt_asan -fsanitize=fuzzer-no-link"],
    [no], [],
    [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: want yes, thread or fuzzer])])
  AC_SUBST([SANITIZER_FLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])
  AS_IF([test "$enable_sanitizers" = fuzzer], [FUZZER_LIBS=-fsanitize=fuzzer])
  AC_SUBST([FUZZER_LIBS])
  AM_CONDITIONAL([FUZZER], [test "$enable_sanitizers" = fuzzer])
])
