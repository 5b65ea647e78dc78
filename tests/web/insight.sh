#!/bin/sh
# What the page says of a run's speed, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/insight_test.mjs"
