#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): choosing runs by the filter and by the heads of columns.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/choose_test.mjs"
