# AX_DPT_UI: the page is built by node from web/ui, taken ready-made from a release tarball (web/ui/dist), or
# left out (--without-ui), in which case the server serves a stub page.
AC_DEFUN([AX_DPT_UI], [
  AC_ARG_WITH([ui], [AS_HELP_STRING([--without-ui], [serve a stub page; needs no node])], [], [with_ui=auto])
  AC_PATH_PROG([NODE], [node])
  AC_PATH_PROG([NPM], [npm])
  have_ui=yes ui_reason=
  AS_IF([test "$with_ui" = no], [have_ui=no; ui_reason="--without-ui"],
    [test -f "$srcdir/web/ui/dist/index.html"], [ui_reason="ready-made in web/ui/dist"],
    [test -n "$NODE" && test -n "$NPM"], [ui_reason="built by $NODE"],
    [test "$with_ui" = yes], [AC_MSG_ERROR([--with-ui needs node and npm (Debian: nodejs npm)])],
    [have_ui=no; ui_reason="node or npm not found"])
  AM_CONDITIONAL([WITH_UI], [test $have_ui = yes])
])
