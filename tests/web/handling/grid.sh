#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): charts that one arranges, and the height of the table.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/grid_test.mjs"
