# SPDX-License-Identifier: Apache-2.0
# AX_DPT_REQUIRE([PREFIX], [what pkg-config looks for], [Debian package]): a library that every build needs.
AC_DEFUN([AX_DPT_REQUIRE], [
  PKG_CHECK_MODULES([$1], [$2], [], [dpt_missing="$dpt_missing
  $2 (Debian: $3)" dpt_packages="$dpt_packages $3"])
])

# AX_DPT_REQUIRED: ends configure when some of them are missing, and names all of those.
AC_DEFUN([AX_DPT_REQUIRED], [
  AS_IF([test -n "$dpt_missing"], [AC_MSG_ERROR([these libraries are needed and were not found:$dpt_missing
On Debian: apt-get install$dpt_packages])])
])

# AX_DPT_OPTIONAL([name], [PREFIX], [what pkg-config looks for], [words for config.h]): defines HAVE_PREFIX where it is found.
# Sets have_name and, where it is not found, name_reason.
AC_DEFUN([AX_DPT_OPTIONAL], [
  have_$1=no $1_reason=
  PKG_CHECK_MODULES([$2], [$3], [have_$1=yes AC_DEFINE([HAVE_$2], [1], [$4])], [$1_reason="$3 not found"])
])
