#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): bulk changes, the arrangement of the table, and the overview.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/saved_view/many_test.mjs"
