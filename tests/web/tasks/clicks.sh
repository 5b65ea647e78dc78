#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): tasks within their limits of clicks, by mouse, on a phone and by keys.
. "$srcdir/tests/web/prepare.sh"
exec timeout 400 node --test "$srcdir/tests/web/tasks/clicks_test.mjs"
