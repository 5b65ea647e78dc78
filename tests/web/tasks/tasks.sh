#!/bin/sh
# The tasks of a reader (tasks.mjs), with keys alone, wide and narrow, in Debian's chromium: a third of them, --all: every
# one in both windows and both themes.
. "$srcdir/tests/web/prepare.sh"
[ "${1-}" = --all ] && export TASKS=all
exec timeout 900 node --test "$srcdir/tests/web/tasks/tasks_test.mjs"
