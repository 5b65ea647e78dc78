#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the page.
. "$srcdir/tests/web/prepare.sh"
exec timeout 400 node --test "$srcdir/tests/web/page_test.mjs"
