#!/bin/sh
# The tasks of a reader (tasks.mjs), with keys alone, wide and narrow, in Debian's chromium: a third of them, --all: every
# one in both windows and both themes; --all WORDS: of those only what is named so (a regular expression).
. "$srcdir/tests/web/prepare.sh"
[ "${1-}" = --all ] && export TASKS=all
exec timeout 900 node --test ${2:+"--test-name-pattern=$2"} "$srcdir/tests/web/tasks/tasks_test.mjs"
