# SPDX-License-Identifier: Apache-2.0
# AX_DPT_ONEDNN: the CPU module needs oneDNN's C API (dnnl.h); without it only the ref backend is built.
AC_DEFUN([AX_DPT_ONEDNN], [
  AC_ARG_WITH([onednn], [AS_HELP_STRING([--with-onednn=auto|no|DIR], [oneDNN for the cpu backend])], [], [with_onednn=auto])
  onednn_reason=
  AS_IF([test "$with_onednn" = no], [have_onednn=no; onednn_reason="--with-onednn=no"], [
    have_onednn=yes
    AS_CASE([$with_onednn], [auto|yes], [ONEDNN_CPPFLAGS= ONEDNN_LIBS=-ldnnl],
      [ONEDNN_CPPFLAGS="-isystem $with_onednn/include" ONEDNN_LIBS="-L$with_onednn/lib -Wl,-rpath,$with_onednn/lib -ldnnl"])
    dpt_save_cppflags=$CPPFLAGS dpt_save_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $ONEDNN_CPPFLAGS"
    AC_CHECK_HEADER([dnnl.h], [], [have_onednn=no; onednn_reason="dnnl.h not found"])
    LIBS="$LIBS $ONEDNN_LIBS"
    AS_IF([test $have_onednn = yes], [AC_MSG_CHECKING([for dnnl_version])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <dnnl.h>]], [[return !dnnl_version();]])], [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no]); have_onednn=no; onednn_reason="libdnnl does not link"])])
    CPPFLAGS=$dpt_save_cppflags LIBS=$dpt_save_libs
  ])
  AC_SUBST([ONEDNN_CPPFLAGS])
  AC_SUBST([ONEDNN_LIBS])
  AM_CONDITIONAL([HAVE_ONEDNN], [test $have_onednn = yes])
])
