#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser test (chromium): the tasks of a reader (tasks.mjs) by keys alone, wide and narrow. Default: a third of them.
# --all: every task in both windows and both themes; --all PATTERN: those whose name matches the regular expression.
. "$srcdir/tests/web/prepare.sh"
[ "${1-}" = --all ] && export TASKS=all
exec timeout 900 node --test ${2:+"--test-name-pattern=$2"} "$srcdir/tests/web/tasks/tasks_test.mjs"
