#!/bin/sh
# The page of a run that was restarted and has artifacts, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/restart_test.mjs"
