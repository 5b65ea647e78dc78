#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): reading values of charts.
. "$srcdir/tests/web/prepare.sh"
exec timeout 400 node --test "$srcdir/tests/web/reading_test.mjs"
