# AX_DPT_SANITIZERS: --enable-sanitizers builds with address and undefined-behaviour sanitizers.
AC_DEFUN([AX_DPT_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers], [build with ASan and UBSan])], [], [enable_sanitizers=no])
  AS_IF([test "$enable_sanitizers" = yes],
    [SANITIZER_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
  AC_SUBST([SANITIZER_FLAGS])
  AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" = yes])
])
