#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the settings, what a session may do, and W&B's artifacts on the page.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/settings/settings_test.mjs"
