# SPDX-License-Identifier: Apache-2.0
# Turns schema/sql into C: `-v what=queries` gives SQL_QUERY(name, "text") a named query, `-v what=pg` the same in
# PostgreSQL's dialect, `-v what=columns` gives SQL_COLUMN(name, column, number) a column of a named query's rows,
# `-v what=scripts` gives SQL_MIGRATION(number, "text") a NNNN_*.sql file and SQL_SCRIPT(name, "text") any other file.
#
# A query's text is good for both dialects, with ?1 for $1, unless a second one follows it behind a line `-- postgresql:`;
# that has the same columns. A query without a first text is PostgreSQL's alone.
#
# A column is called by its AS, else by the column that it is, a pragma's by the pragma; what has no name has no
# SQL_COLUMN. A query `-- name: A as B` must give the columns of B in B's order, and is read by B's. Whole tables (all_T, of
# tables.awk) are read letter by letter, summaries too, so theirs may stand in any order.
function quoted(line) {
	gsub(/\\/, "\\\\", line)
	gsub(/"/, "\\\"", line)
	return "\t\"" line "\\n\""
}
function failed(text) {
	print FILENAME ":" FNR ": " open ": " text > "/dev/stderr"
	bad = 1
	exit 1
}
# Moves depth to the end of the word, which holds no blank; true when it ends outside of all brackets.
function outside(word,   opened, closed) {
	opened = gsub(/\(/, "(", word)
	closed = gsub(/\)/, ")", word)
	depth += opened - closed
	return !depth
}
function add(item) {
	sub(/^ +/, "", item)
	sub(/ +$/, "", item)
	sub(/^DISTINCT /, "", item)
	if (match(item, /[^ ] AS [a-z_0-9]+$/)) sub(/.* AS /, "", item)
	sub(/^[a-z]+\./, "", item)
	column[count++] = item
}
# The list between the first SELECT and its FROM that stand in no brackets.
function select_list(   n, i, words, word, item, at) {
	n = split(text, words, " ")
	for (i = 1; i <= n; i++) {
		word = words[i]
		if (!depth && at && word == "FROM") break
		if (!depth && word == "SELECT" && !at) { at = 1; continue }
		if (outside(word) && at && word ~ /,$/) { sub(/,$/, "", word); add(item " " word); item = ""; continue }
		if (at) item = item " " word
	}
	sub(/;$/, "", item)
	if (at) add(item)
	depth = 0
}
function columns(   i, all) {
	count = 0
	sub(/^ /, "", text)
	if (text ~ /^PRAGMA /) { sub(/^PRAGMA /, "", text); sub(/[(;].*/, "", text); add(text) }
	else if (text ~ /^(SELECT|WITH) /) select_list()
	for (i = 0; i < count; i++) {
		all = all " " column[i]
		if (column[i] == "count") sum_at = i
		if (column[i] == "nonfinite_step" && i != sum_at + 12 && open !~ /^all_/) failed("a summary is count to nonfinite_step, 13 columns")
		if (column[i] ~ /^[a-z_][a-z_0-9]*$/ && like == "" && !quiet) print "SQL_COLUMN(" open ", " column[i] ", " i ")"
		else if (count > 1 && column[i] !~ /^[a-z_][a-z_0-9]*$/) failed("column " i " wants a name: " column[i])
	}
	if (like != "" && all != list[like]) failed("its columns are not those of " like)
	list[open] = all
}
# Both texts' columns; a second text alone gives the query's.
function both_columns(   i, first) {
	if (text ~ /[^ ]/) columns()
	first = list[open]
	if (other == "") return
	if (text !~ /[^ ]/) { text = other; columns(); return }
	text = other
	quiet = 1
	columns()
	quiet = 0
	if (first != list[open] && count > 1) failed("PostgreSQL's columns are not SQLite's:" list[open] " for" first)
	list[open] = first
}
function finish() {
	if (open == "" || bad) return
	if (what == "columns") both_columns()
	else if (what == "scripts") print ")"
	else if (what == "text") return
	else print "SQL_QUERY(" open ",\n" (what == "pg" && other != "" ? other : text != "" ? text : "\t\"\"\n") ")"
	open = text = other = ""
	second = 0
}
FNR == 1 {
	finish()
	base = FILENAME
	sub(/.*\//, "", base)
	if (what == "scripts") {
		number = base
		stem = base
		sub(/\.sql$/, "", stem)
		if (base ~ /^[0-9][0-9][0-9][0-9]_/) {
			sub(/_.*/, "", number)
			print "SQL_MIGRATION(" (number + 0) ","
		} else {
			print "SQL_SCRIPT(" stem ","
		}
		open = base
	}
}
what == "text" { open = FILENAME }
what != "scripts" && /^-- name: / {
	finish()
	if ($3 !~ /^[a-z][a-z0-9_]*$/ || ($3 in seen)) { print FILENAME ":" FNR ": bad or repeated name " $3 > "/dev/stderr"; exit 1 }
	if (NF > 3 && (NF != 5 || $4 != "as" || !($5 in seen))) { print FILENAME ":" FNR ": not `as` a query above" > "/dev/stderr"; exit 1 }
	seen[$3] = 1
	open = $3
	like = $5
	next
}
what != "scripts" && /^-- postgresql:$/ { second = 1; next }
/^[ \t]*--/ || /^[ \t]*$/ { next }
open == "" { print FILENAME ":" FNR ": text before the first name" > "/dev/stderr"; exit 1 }
what == "scripts" || what == "text" { print quoted($0); next }
what == "columns" { gsub(/[ \t]+/, " "); line = " " $0 }
what == "pg" { gsub(/\?/, "$") }
what != "columns" { line = quoted($0) "\n" }
second { other = other line; next }
{ text = text line }
END { finish() }
