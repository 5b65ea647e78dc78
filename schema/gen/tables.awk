# SPDX-License-Identifier: Apache-2.0
# Turns the tables of schema/sql/postgresql.sql into what moves a whole store (web/store/db/tables.h):
# `-v what=queries` gives named queries for sql.awk: all_T reads every row of table T in the order of its key (with
# PostgreSQL through a cursor, which more_T reads on), put_T adds one, next_T lets numbers that the table draws go on behind
# its rows; `-v what=list` gives SQL_TABLE(T, "a letter a column"): i an integer, x one that may be NULL, d a double, t a text,
# b bytes.
#
# Left out: what is the place's and not the store's (its rows of meta, which files lie where, processes of a team).
BEGIN {
	split("meta artifact archive object leaving counter token_count process lease", names, " ")
	for (i in names) left_out[names[i]] = 1
	left_out["run.version"] = 1
	letter["bigint"] = "i"; letter["double"] = "d"; letter["text"] = "t"; letter["bytea"] = "b"
}
function failed(text) {
	print FILENAME ": table " table ": " text > "/dev/stderr"
	bad = 1
	exit 1
}
# One item between the commas of a table.
function add(item,   word, n) {
	gsub(/^[ \t]+|[ \t]+$/, "", item)
	if (item ~ /^UNIQUE/ || item == "") return
	if (item ~ /^PRIMARY KEY/) { gsub(/^PRIMARY KEY \(|\)$/, "", item); key = item; return }
	n = split(item, word, " ")
	if ((table "." word[1]) in left_out) return
	if (!(word[2] in letter)) failed("what is " item "?")
	name = word[1]
	if (name ~ /^"/) name = name " AS " substr(name, 2, length(name) - 2)
	read = read (count ? ", " : "") name
	column = column (count++ ? ", " : "") word[1]
	mark = mark (mark == "" ? "" : ", ") "?" count
	kinds = kinds (word[2] == "bigint" && item !~ /NOT NULL|PRIMARY KEY/ ? "x" : letter[word[2]])
	if (item ~ /PRIMARY KEY/) key = word[1]
	if (item ~ /IDENTITY/) drawn = word[1]
}
function items(text,   i, c, depth, from) {
	from = 1
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		depth += (c == "(") - (c == ")")
		if (c == "," && !depth) { add(substr(text, from, i - from)); from = i + 1 }
	}
	add(substr(text, from))
}
function finish() {
	count = 0; column = read = mark = kinds = key = drawn = ""
	items(body)
	if (key == "") failed("no primary key")
	if (what == "list") { print "SQL_TABLE(" table ", \"" kinds "\", " (drawn == "" ? "DB_QUERY_COUNT" : "DB_next_" table) ")"; return }
	print "-- name: all_" table "\nSELECT " read " FROM " table " ORDER BY " key ";"
	print "-- postgresql:\nDECLARE all_" table " NO SCROLL CURSOR FOR SELECT " read " FROM " table " ORDER BY " key ";"
	print "-- name: more_" table "\n-- postgresql:\nFETCH " (kinds ~ /b/ ? 64 : 1000) " FROM all_" table ";"
	print "-- name: put_" table "\nINSERT INTO " table " (" column ") VALUES (" mark ");"
	if (drawn == "") return
	print "-- name: next_" table "\n-- postgresql:"
	print "SELECT setval(pg_get_serial_sequence('" table "', '" drawn "'), 1 + coalesce(max(" drawn "), 0), false) FROM " table ";"
}
/^[ \t]*--/ { next }
/^CREATE TABLE / {
	table = $3
	body = ""
	inside = 1
	sub(/^CREATE TABLE [a-z_]+ \(/, "")
}
inside {
	body = body " " $0
	if (body ~ /\);$/) {
		sub(/\);$/, "", body)
		inside = 0
		if (!(table in left_out)) finish()
	}
}
END { if (bad) exit 1 }
