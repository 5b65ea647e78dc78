#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): no metrics of other experiments and no blank bands.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/own_test.mjs"
