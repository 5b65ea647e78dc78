#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): alerts.
. "$srcdir/tests/web/prepare.sh"
exec timeout 120 node --test "$srcdir/tests/web/saved_view/alerts_test.mjs"
