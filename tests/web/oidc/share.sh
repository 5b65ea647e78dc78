#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): links that show one thing are made on the page, and opened by a browser without a token.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/oidc/share_test.mjs"
