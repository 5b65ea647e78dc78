/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c: reads and fills whole tables with queries generated from their columns. */
#include "web/store/db/db.h"

static const struct db_table tables[] = {
#define SQL_TABLE(name, kinds, next) { #name, kinds, DB_all_##name, DB_more_##name, DB_put_##name, next },
#include "web/store/db/tables.def"
#undef SQL_TABLE
};

#define TABLE_COUNT (sizeof(tables) / sizeof(tables[0]))

struct table_walk {
	struct db *d;
	int (*row)(void *arg, const struct db_row *r, struct err *err);
	void *arg;
};

static void read_table_value(struct db_value *v, struct db_rows *q, char kind, int column)
{
	enum db_column at = (enum db_column)column;

	*v = (struct db_value){ .kind = kind };
	if (kind == 'i')
		v->i = db_i64(q, at);
	else if (kind == 'x')
		v->i = db_time(q, at);
	else if (kind == 'd')
		v->d = db_f64(q, at);
	else if (kind == 't')
		v->at = db_str(q, at);
	else
		v->at = db_blob(q, at);
	v->n = kind == 'b' ? db_bytes(q, at) : 0;
}

static int pass_table_row(const struct table_walk *w, const struct db_table *t, struct db_rows *q, struct err *err)
{
	struct db_value v[DB_VALUES_MAX];
	struct db_row row = { .table = t, .values = v, .n = (int)strlen(t->kinds) };
	int i;

	for (i = 0; i < row.n; i++)
		read_table_value(&v[i], q, t->kinds[i], i);
	return w->row(w->arg, &row, err);
}

/* Passes all rows of a query; returns their number, or negative. */
static int64_t walk_table_rows(const struct table_walk *w, const struct db_table *t, enum db_query query,
			       struct err *err)
{
	struct db_rows *q;
	int64_t n = 0;
	int rc = db_start(w->d, &q, query, err, "");

	if (rc)
		return rc;
	while ((rc = db_next(w->d, q, err)) > 0) {
		rc = pass_table_row(w, t, q, err);
		if (rc) {
			db_stop(q);
			return rc;
		}
		n++;
	}
	return rc ? rc : n;
}

static int walk_db_table(const struct table_walk *w, const struct db_table *t, struct err *err)
{
	int64_t n;

	if (!db_shared(w->d)) {
		n = walk_table_rows(w, t, t->all, err);
		return n < 0 ? (int)n : 0;
	}
	n = db_run(w->d, t->all, err, "");
	if (!n)
		while ((n = walk_table_rows(w, t, t->more, err)) > 0)
			;
	return (int)n;
}

int tables_walk(struct db *d, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
		struct err *err)
{
	const struct table_walk w = { .d = d, .row = row, .arg = arg };
	int rc = 0;

	for (size_t i = 0; i < TABLE_COUNT && !rc; i++)
		rc = walk_db_table(&w, &tables[i], err);
	return rc;
}

const struct db_table *tables_named(const char *name)
{
	size_t i = 0;

	while (i + 1 < TABLE_COUNT && strcmp(tables[i].name, name))
		i++;
	return &tables[i];
}

int tables_put(struct db *d, const struct db_row *r, struct err *err)
{
	return db_run_values(d, r->table->put, r->values, r->n, err);
}

int tables_put_end(struct db *d, struct err *err)
{
	int rc;

	if (!db_shared(d))
		return 0;
	rc = db_run(d, DB_move_next_ids, err, "");
	for (size_t i = 0; i < TABLE_COUNT && !rc; i++)
		if (tables[i].next != DB_QUERY_COUNT)
			rc = db_run(d, tables[i].next, err, "");
	return rc ? rc : db_run(d, DB_move_rev, err, "");
}
