#!/bin/sh
# The parts of the page that are loaded when they are wanted, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/parts_test.mjs"
