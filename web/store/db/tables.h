/* tables.h: reads every row of a store, table by table in a fixed order, and inserts them into the tables of another
 * engine. The tables are those of schema/sql/postgresql.sql (schema/gen/tables.awk), without what belongs to the
 * place: rows of meta, artifact and object about it, and messages between processes of a team. */
#ifndef DPT_STORE_TABLES_H
#define DPT_STORE_TABLES_H

#include "web/store/db/db.h"

struct db_table {
	const char *name, *kinds; /* format letters of the columns */
	enum db_query all, more, put, next;
};

/* Borrowed until `row` returns. */
struct db_row {
	const struct db_table *table;
	const struct db_value *values;
	int n;
};

/* Passes every row to `row`: tables in a fixed order, rows by key; a negative result ends it. Call it inside a
 * transaction, once per transaction. */
int tables_walk(struct db *d, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
		struct err *err);

const struct db_table *tables_named(const char *name); /* in the order that tables are visited, addresses ascend */

int tables_put(struct db *d, const struct db_row *r, struct err *err);

/* Call after the last row: sequences continue after the ids in use. */
int tables_put_end(struct db *d, struct err *err);

#endif
