#!/bin/sh
# What runs told besides numbers, on the page, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/told_test.mjs"
