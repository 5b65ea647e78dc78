/* tables.h: every row of a store, table by table, whichever engine holds it: read in one order, and put into the tables
 * of another engine. The tables are those of schema/sql/postgresql.sql (schema/gen/tables.awk) but for what belongs to
 * the place: its rows of meta, artifact and object, and what processes of a team tell each other. */
#ifndef DPT_STORE_TABLES_H
#define DPT_STORE_TABLES_H

#include "web/store/db/db.h"

struct db_table {
	const char *name, *kinds; /* a letter of a format for each column */
	enum db_query all, more, put, next;
};

/* Borrowed until `row` returns. */
struct db_row {
	const struct db_table *table;
	const struct db_value *values;
	int n;
};

/* Hands every row to `row`, tables in a fixed order, rows by their keys; a negative code of its ends it. In a
 * transaction, and once in one. */
int tables_walk(struct db *d, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
		struct err *err);

const struct db_table *tables_named(const char *name); /* tables are walked in the order of their addresses */

int tables_put(struct db *d, const struct db_row *r, struct err *err);

/* Behind the last row: numbers that are drawn go on behind those that are in use. */
int tables_put_end(struct db *d, struct err *err);

#endif
