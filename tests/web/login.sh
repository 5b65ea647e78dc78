#!/bin/sh
# The page of a server that wants a token, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/login_test.mjs"
