#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the frame of the page with long names, many sections and narrow windows.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/layout_test.mjs"
