#!/bin/sh
# Browser test (chromium): the page while its server is down.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/away_test.mjs"
