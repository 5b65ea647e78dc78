#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every include must be permitted by allowed.txt: which room may include which, through which face, and which room owns
# which third-party header. A room without a face line exposes only the header with its own name.
cd "${srcdir:-.}" || exit 1
git_files() { git ls-files '*.c' '*.h' '*.cu' '*.cuh' 2>/dev/null; git ls-files -o --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' 2>/dev/null; }
files=$( (git_files; [ -d .git ] || [ -f .git ] || find tracker trainer web tests -name '*.[ch]' -o -name '*.cu') | sort -u)
# shellcheck disable=SC2086
grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' $files /dev/null | awk -v rules=tests/lint/allowed.txt '
function matches(file, pat,   re) {
	if (pat ~ /\*/) { re = pat; gsub(/[.+]/, "\\\\&", re); gsub(/\*/, ".*", re); return file ~ ("^" re "$") }
	return file == pat || index(file, pat "/") == 1 || (pat !~ /\.[ch]$/ && index(file, pat) == 1 && substr(file, length(pat) + 1, 1) == "/")
}
# The innermost room around the target whose face an include from dir bypasses; "" when there is none.
function passed(dir, target,   room, way) {
	room = target
	while (sub(/\/[^\/]*$/, "", room)) {
		if (room == dir || index(dir, room "/") == 1) return ""
		way = substr(target, length(room) + 2)
		if (room in face) {
			if (!index(face[room], " " way " ") && !(way ~ /\// && index(face[room], " " substr(way, 1, index(way, "/")) " "))) return room
		} else if (way !~ /\//) {
			if (!index(used[room] " ", " " way " ")) used[room] = used[room] " " way
			if (!index(room "/", "/" substr(way, 1, length(way) - 2) "/")) lacks[room] = 1
		}
	}
	return ""
}
BEGIN {
	while ((getline line < rules) > 0) {
		if (line ~ /^#/ || line == "") continue
		cut = index(line, ":")
		key = substr(line, 1, cut - 1); rest = substr(line, cut + 1)
		if (key in lines) { print rules ": two lines " key; bad = 1 }
		lines[key]
		if (sub(/^face /, "", key)) { face[key] = rest " " }
		else if (key ~ /^room /) continue
		else if (key ~ /^</) { owner[key] = rest } else { allow[key] = rest }
	}
}
{
	split($0, p, ":"); file = p[1]; lineno = p[2]; inc = $0
	sub(/^[^:]*:[^:]*:[^"<]*/, "", inc)
	if (inc ~ /^"/) {
		target = inc; sub(/^"/, "", target); sub(/".*/, "", target)
		if (target !~ /\// ) { if (target == "config.h") next; print file ":" lineno ": include \"" target "\" must be rooted at the top folder"; bad = 1; next }
		dir = file; sub(/\/[^\/]*$/, "", dir)
		if (file !~ /^tests\// && target ~ /\.h$/) behind = passed(dir, target); else behind = ""
		if (behind != "") {
			print file ":" lineno ": " target " is no face of " behind ", whose faces are" face[behind]; bad = 1; next
		}
		if (index(target, dir "/") == 1) next
		best = ""
		for (k in allow) if (matches(file, k) && length(k) > length(best)) best = k
		if (best == "") { print file ":" lineno ": no rule for this folder"; bad = 1; next }
		if (matches(target, best)) next
		n = split(allow[best], a, " "); ok = 0
		for (i = 1; i <= n; i++) if (matches(target, a[i])) ok = 1
		if (!ok) { print file ":" lineno ": " best " may not include " target; bad = 1 }
	} else {
		for (k in owner) {
			if (index(inc, k) != 1) continue
			n = split(owner[k], a, " "); ok = 0
			for (i = 1; i <= n; i++) if (matches(file, a[i])) ok = 1
			if (!ok) { print file ":" lineno ": " k " belongs to" owner[k]; bad = 1 }
		}
	}
}
END {
	for (room in lacks) {
		print "tests/lint/allowed.txt: others use" used[room] " of " room ": say \"face " room ":" used[room] "\", or use less of it"
		bad = 1
	}
	exit bad
}' || exit 1
echo "includes: $(echo "$files" | wc -l) files keep the table"
