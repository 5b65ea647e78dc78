#!/bin/sh
# Alerts on the page, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 120 node --test "$srcdir/tests/web/kept/alerts_test.mjs"
