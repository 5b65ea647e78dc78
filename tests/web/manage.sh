#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): managing runs, and runs of MLflow clients.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/manage_test.mjs"
