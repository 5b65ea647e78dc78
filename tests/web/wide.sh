#!/bin/sh
# The page of runs with hundreds of metrics, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/wide_test.mjs"
