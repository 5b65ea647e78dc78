#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the table of runs: order and edges of its columns, notation, Show all, Back.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/table_test.mjs"
