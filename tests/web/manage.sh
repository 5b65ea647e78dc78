#!/bin/sh
# The page of runs that are managed, and of MLflow's, in Debian's chromium.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/manage_test.mjs"
