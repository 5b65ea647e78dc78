#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): defects that a review of the page found.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/review_test.mjs"
