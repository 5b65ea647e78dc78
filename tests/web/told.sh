#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): media, console, code and alerts of runs.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/told_test.mjs"
