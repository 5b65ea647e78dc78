#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): what charts show of several runs: dense lines, single values, two metrics, parallel axes.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/lines_test.mjs"
