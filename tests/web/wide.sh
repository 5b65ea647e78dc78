#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): runs with hundreds of metrics.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/wide_test.mjs"
