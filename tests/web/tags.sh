#!/bin/sh
# Tags, and runs that belong to other runs, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/tags_test.mjs"
