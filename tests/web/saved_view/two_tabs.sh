#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): reports, on the page and exported as a file.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/saved_view/two_tabs_test.mjs"
