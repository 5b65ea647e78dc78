#!/bin/sh
# Reports on the page, and as a file of their own, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/kept/report_test.mjs"
