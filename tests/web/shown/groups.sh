#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): groups of runs: what a mean counts, colours, names, and groups of one run; nested runs.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/shown/groups_test.mjs"
