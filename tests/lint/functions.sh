#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No function body over 70 lines (it is delimited by braces in column 0); no typedef struct; each source file
# begins with a comment; no unfinished marks.
cd "${srcdir:-.}" || exit 1
files=$(find tracker trainer web tests -name node_modules -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) -print | sort)
[ -n "$files" ] || exit 1
# shellcheck disable=SC2086
awk '
FNR == 1 { open = 0; if ($0 !~ /^\/\*/) { print FILENAME ":1: file must open with a comment"; bad = 1 } }
/^[A-Za-z_].*\(/ && !/;[ \t]*$/ { name = $0; start = FNR }
/^\{/ { open = FNR }
/^\}/ { if (open && FNR - open - 1 > 70) { printf "%s:%d: %d lines: %s\n", FILENAME, open, FNR - open - 1, name; bad = 1 } open = 0 }
/^typedef struct/ { print FILENAME ":" FNR ": typedef struct"; bad = 1 }
/(^|[^A-Za-z_])(TODO|FIXME|XXX)([^A-Za-z_X]|$)/ { print FILENAME ":" FNR ": unfinished mark"; bad = 1 }
END { exit bad }' $files || exit 1
echo "functions: $(echo "$files" | wc -l) files within 70 lines a function"
