#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): contrast, sizes of targets, visible focus and reduced motion on every screen.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/screens_test.mjs"
