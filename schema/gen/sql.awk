# Turns schema/sql into C: `-v what=queries` gives SQL_QUERY(name, "text") a named query, `-v what=scripts` gives
# SQL_MIGRATION(number, "text") a NNNN_*.sql file and SQL_SCRIPT(name, "text") any other file.
function quoted(line) {
	gsub(/\\/, "\\\\", line)
	gsub(/"/, "\\\"", line)
	return "\t\"" line "\\n\""
}
function finish() {
	if (open != "") print ")"
	open = ""
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
what == "queries" && /^-- name: / {
	finish()
	if ($3 !~ /^[a-z][a-z0-9_]*$/ || ($3 in seen)) { print FILENAME ":" FNR ": bad or repeated name " $3 > "/dev/stderr"; exit 1 }
	seen[$3] = 1
	print "SQL_QUERY(" $3 ","
	open = $3
	next
}
/^[ \t]*--/ || /^[ \t]*$/ { next }
open == "" { print FILENAME ":" FNR ": text before the first name" > "/dev/stderr"; exit 1 }
{ print quoted($0) }
END { finish() }
