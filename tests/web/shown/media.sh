#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): media have one step, right names, Markdown and equal ranges.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/shown/media_test.mjs"
