#!/bin/sh
# What the line charts draw of awkward points, and how they are read and zoomed, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/charts_test.mjs"
