#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): what a new user sees first: an empty store, a sign-in form.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/first_test.mjs"
