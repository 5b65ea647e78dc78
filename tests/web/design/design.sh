#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): every component in every state, light and dark, as recorded in recorded.txt.
. "$srcdir/tests/web/prepare.sh"
[ -d "$builddir/web/ui/work/node_modules" ] || skip 'the page was not built here'
exec timeout 600 node --test "$srcdir/tests/web/design/design_test.mjs"
