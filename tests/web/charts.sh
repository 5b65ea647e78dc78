#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): how line charts draw unusual points, and how they are read and zoomed.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/charts_test.mjs"
