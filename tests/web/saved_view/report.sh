#!/bin/sh
# Reports on the page, and as a file of their own, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/saved_view/report_test.mjs"
