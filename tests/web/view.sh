#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the view of runs and its persistence.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/view_test.mjs"
