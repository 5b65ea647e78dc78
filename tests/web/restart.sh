#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): a run that was restarted and has artifacts.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/restart_test.mjs"
