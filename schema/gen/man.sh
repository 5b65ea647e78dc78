#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# man.sh: a manual page from a program's own help, so that there is one text.
# usage: man.sh PROGRAM NAME VERSION 'one line' [COMMAND...]; the page goes to stdout.
set -e
program=$1 name=$2 version=$3 line=$4
shift 4
escape() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }
COLUMNS=78
export COLUMNS
help() { # words: their help, kept as it is laid out
	echo .nf
	"$program" "$@" | escape
	echo .fi
}
printf '.TH %s 1 "" "%s %s"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n' "$name" dptrack "$version" "$name" "$line"
printf '.B %s\n[COMMAND] [FLAGS]\n.SH DESCRIPTION\n' "$name"
help --help
for command; do
	printf '.SH "%s %s"\n' "$name" "$command"
	help "$command" --help all
done
