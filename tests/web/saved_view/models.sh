#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): registered models.
. "$srcdir/tests/web/prepare.sh"
exec timeout 200 node --test "$srcdir/tests/web/saved_view/models_test.mjs"
