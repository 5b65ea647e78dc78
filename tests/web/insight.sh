#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the diagnosis of a run's speed on the page.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/insight_test.mjs"
