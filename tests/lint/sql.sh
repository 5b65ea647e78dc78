#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Migrations apply in order to an empty file, the connection settings run, and every named query prepares, as far as
# SQLite supports it; a query only for PostgreSQL is only checked to be used.
cd "${srcdir:-.}" || exit 1
command -v sqlite3 >/dev/null || { echo "sql: the sqlite3 shell is not installed (Debian: sqlite3)"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sqlite3 -bail "$work/t.db" <schema/sql/open_writer.sql >/dev/null || exit 1
before=0
for f in schema/sql/[0-9]*.sql; do
	number=$(basename "$f" | sed 's/^0*\([0-9]*\)_.*/\1/')
	[ "$number" -eq $((before + 1)) ] || { echo "sql: $f follows number $before"; exit 1; }
	grep -q "user_version = $number;" "$f" || { echo "sql: $f does not set user_version $number"; exit 1; }
	before=$number
	sqlite3 -bail "$work/t.db" <"$f" || { echo "sql: $f does not apply"; exit 1; }
done
grep -q "('version', '$before')" schema/sql/postgresql.sql && grep -q "^#define DB_VERSION $before\>" web/store/db/db.h ||
	{ echo "sql: schema/sql/postgresql.sql and DB_VERSION in web/store/db/db.h are not of version $before"; exit 1; }
for f in $(ls schema/sql/[0-9]*.sql | sed -n '/\/0011_/,$p'); do # older ones were never released for PostgreSQL
	step=schema/sql/postgresql/$(basename "$f")
	grep -q "value = '$(basename "$f" | sed 's/^0*\([0-9]*\)_.*/\1/')' WHERE name = 'version'" "$step" ||
		{ echo "sql: $f has no $step that sets its version"; exit 1; }
done
sqlite3 -bail "$work/t.db" <schema/sql/open_reader.sql >/dev/null || exit 1
awk -v dir="$work" '/^-- name: / { f = dir "/" $3 ".q"; printf "" >f; next } /^-- postgresql:/ { f = ""; next } /^[ \t]*--/ || /^[ \t]*$/ { next } f { print >f }' schema/sql/queries.sql
count=0
for f in "$work"/*.q; do
	count=$((count + 1))
	case $(head -c 6 "$f") in
	SELECT | INSERT | UPDATE | DELETE | WITH*) text="EXPLAIN $(cat "$f")" ;;
	"") text="" ;;
	*) continue ;;
	esac
	printf '%s\n' "$text" | sqlite3 -bail "$work/t.db" >/dev/null || { echo "sql: query $(basename "$f" .q) does not prepare"; exit 1; }
	grep -rq "DB_$(basename "$f" .q)\b" web/store || { echo "sql: query $(basename "$f" .q) is used nowhere"; exit 1; }
done
# Queries on other programs' files prepare on sample files, in tests/cli/import.
for name in $(sed -n 's/^-- name: \([a-z_]*\).*/\1/p' schema/sql/mlflow.sql); do
	grep -rq "FOREIGN_$name\b" web || { echo "sql: query $name of mlflow.sql is used nowhere"; exit 1; }
done
echo "sql: $count named queries prepare"
