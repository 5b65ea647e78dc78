#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): runs side by side, tabs of a run, CSV, figures of scatter plots and parallel axes.
. "$srcdir/tests/web/prepare.sh"
exec timeout 300 node --test "$srcdir/tests/web/handling/compared_test.mjs"
