#!/bin/sh
# The page while its server is away, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/away_test.mjs"
