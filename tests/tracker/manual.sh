#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every function of libdptrack and every command has a manual page, and each page is formatted without warnings.
cd "$builddir" || exit 1
bad=0
complain() { echo "manual: $*"; bad=1; }
for name in $(sed -n 's/.*\<\(dptrack_[a-z0-9_]*\)(.*;.*/\1/p; s/^int \(dptrack_[a-z_]*\)(.*/\1/p' "$srcdir/tracker/dptrack.h" | sort -u); do
	[ -s "tracker/man/$name.3" ] || complain "$name has no page"
done
for command in $(sed -n 's/^COMMAND(\(.*\))$/\1/p' "$srcdir/web/cli/commands.def"); do
	grep -q "^\.SH \"dptrack $command\"" dptrack.1 || complain "dptrack $command is not in dptrack.1"
done
grep -q -- '\\-\\-data\\-path' dptrain.1 || complain "dptrain.1 lacks --data-path"
if command -v groff >/dev/null 2>&1; then
	for page in dptrack.1 dptrain.1 tracker/man/*.3; do
		said=$(grep -q '^\.so' "$page" || groff -Kutf8 -man -Tutf8 -ww "$page" 2>&1 >/dev/null | grep -v "can't break line\|cannot break line\|cannot adjust line\|can't adjust")
		[ -z "$said" ] || complain "$page: $said"
	done
fi
[ "$bad" = 0 ] && echo "manual: $(ls tracker/man/*.3 | wc -l) pages of the library, two of programs"
exit $bad
