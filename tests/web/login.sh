#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the page of a server that requires a token.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/login_test.mjs"
