#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the page on paper.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/shown/paper_test.mjs"
