#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): tags, and parent and child runs.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/tags_test.mjs"
