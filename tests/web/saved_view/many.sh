#!/bin/sh
# Many runs at once, the table as its reader arranges it, and the overview, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/saved_view/many_test.mjs"
