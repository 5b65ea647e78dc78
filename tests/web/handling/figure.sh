#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the figure dialog of charts.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/figure_test.mjs"
