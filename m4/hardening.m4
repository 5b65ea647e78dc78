# SPDX-License-Identifier: Apache-2.0
# AX_DPT_HARDENING: the compiler's and linker's defences against errors in memory, as far as they have them, in each build that is
# neither for debugging (without optimisation) nor for sanitizers. A distribution's own _FORTIFY_SOURCE stays. KERNEL_FLAGS:
# kernels fill their buffers themselves, so they do without automatic initialisation.
AC_DEFUN([AX_DPT_HARDENING], [
  HARDENING_FLAGS= HARDENING_LDFLAGS= KERNEL_FLAGS=
  AC_CACHE_CHECK([whether this build optimises], [dpt_cv_optimises], [
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __OPTIMIZE__
#error no
#endif
]])], [dpt_cv_optimises=yes], [dpt_cv_optimises=no])])
  AS_IF([test "$enable_sanitizers" = no && test "$dpt_cv_optimises" = yes], [
    dpt_cflags=$CFLAGS dpt_ldflags=$LDFLAGS
    for dpt_flag in -fstack-protector-strong -D_FORTIFY_SOURCE=3 -fstack-clash-protection -fcf-protection -ftrivial-auto-var-init=zero; do
      AC_MSG_CHECKING([whether the compiler takes $dpt_flag])
      CFLAGS="$dpt_cflags -Werror $dpt_flag"
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <string.h>]])],
        [AC_MSG_RESULT([yes])
         HARDENING_FLAGS="$HARDENING_FLAGS $dpt_flag"
         AS_CASE([$dpt_flag], [-ftrivial-*], [KERNEL_FLAGS=-ftrivial-auto-var-init=uninitialized])],
        [AC_MSG_RESULT([no])])
    done
    CFLAGS=$dpt_cflags
    AC_MSG_CHECKING([whether the linker takes -z now and -z relro])
    LDFLAGS="$LDFLAGS -Wl,-z,now,-z,relro"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes])
      HARDENING_LDFLAGS=-Wl,-z,now,-z,relro], [AC_MSG_RESULT([no])])
    LDFLAGS=$dpt_ldflags
  ])
  AC_SUBST([HARDENING_FLAGS])
  AC_SUBST([HARDENING_LDFLAGS])
  AC_SUBST([KERNEL_FLAGS])
])
