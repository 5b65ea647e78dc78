#!/bin/sh
# What the page shows of runs and how that holds, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/view_test.mjs"
