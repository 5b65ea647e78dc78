#!/bin/sh
# The page in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 400 node --test "$srcdir/tests/web/page_test.mjs"
