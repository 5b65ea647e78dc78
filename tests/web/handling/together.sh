#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): runs of several experiments in one table.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/together_test.mjs"
