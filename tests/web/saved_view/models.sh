#!/bin/sh
# Registered models on the page, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 200 node --test "$srcdir/tests/web/kept/models_test.mjs"
