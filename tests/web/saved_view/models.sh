#!/bin/sh
# Registered models on the page, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 200 node --test "$srcdir/tests/web/saved_view/models_test.mjs"
