#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the page while its server is down.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/away_test.mjs"
