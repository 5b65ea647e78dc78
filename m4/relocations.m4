# SPDX-License-Identifier: Apache-2.0
# AX_DPT_RELOCATIONS: relative relocations in a fortieth of their room (DT_RELR), where linker and loader know how: a program
# reads them all whenever it starts.
AC_DEFUN([AX_DPT_RELOCATIONS], [
  AC_CACHE_CHECK([whether programs with packed relocations run], [dpt_cv_packed_relocations], [
    dpt_ldflags=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,-z,pack-relative-relocs"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[static int zero; int *at = &zero;]], [[return *at;]])],
      [dpt_cv_packed_relocations=yes], [dpt_cv_packed_relocations=no], [dpt_cv_packed_relocations=no])
    LDFLAGS=$dpt_ldflags
  ])
  AS_IF([test "$dpt_cv_packed_relocations" = yes], [RELOCATION_FLAGS=-Wl,-z,pack-relative-relocs])
  AC_SUBST([RELOCATION_FLAGS])
])
