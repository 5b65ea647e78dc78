#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the parts of the page that are loaded on demand.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/parts_test.mjs"
