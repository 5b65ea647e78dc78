# SPDX-License-Identifier: Apache-2.0
# AX_DPT_UI: the page is built by node from web/ui, taken ready-made from a release tarball (web/ui/dist beside the
# file web/ui/prebuilt), or left out (--without-ui), in which case the server serves a stub page.
AC_DEFUN([AX_DPT_UI], [
  AC_ARG_WITH([ui], [AS_HELP_STRING([--without-ui], [serve a stub page; needs no node])], [], [with_ui=auto])
  AC_PATH_PROG([NODE], [node])
  AC_PATH_PROG([CURL_PROGRAM], [curl])
  have_ui=yes ui_prebuilt=no ui_reason=
  AS_IF([test "$with_ui" = no], [have_ui=no; ui_reason="--without-ui"],
    [test -f "$srcdir/web/ui/prebuilt" && test -f "$srcdir/web/ui/dist/index.html"],
      [ui_prebuilt=yes; ui_reason="ready-made in web/ui/dist"],
    [AX_DPT_UI_NODE])
  AS_IF([test "$with_ui" = yes && test $have_ui = no],
    [AC_MSG_ERROR([--with-ui: $ui_reason (Debian: nodejs curl)])])
  AM_CONDITIONAL([WITH_UI], [test $have_ui = yes])
  AM_CONDITIONAL([UI_PREBUILT], [test $ui_prebuilt = yes])
])

# Sets have_ui and ui_reason from node and curl, which downloads node's packages; esbuild needs node 18.
AC_DEFUN([AX_DPT_UI_NODE], [
  AS_IF([test -z "$NODE" || test -z "$CURL_PROGRAM"], [have_ui=no; ui_reason="node or curl not found"], [
    AC_MSG_CHECKING([the version of $NODE])
    ui_node=`"$NODE" -p 'process.versions.node' 2>/dev/null`
    AC_MSG_RESULT([${ui_node:-unknown}])
    AS_IF(["$NODE" -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' 2>/dev/null],
      [ui_reason="built by node $ui_node"],
      [have_ui=no; ui_reason="node ${ui_node:-of an unknown version} is older than 18"])])
])
