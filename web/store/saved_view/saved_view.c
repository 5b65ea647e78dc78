/* saved_view.c: reads saved views and reports. */
#include "web/store/saved_view/saved_view.h"

#include <string.h>

#include "web/store/base/list.h"
#include "web/store/db/readers.h"

static struct saved_view read_kept_row(struct arena *a, struct db_rows *q)
{
	return (struct saved_view){
		.id = db_i64(q, COL_kept_rows_id),
		.experiment = db_text(a, q, COL_kept_rows_experiment),
		.name = db_text(a, q, COL_kept_rows_name),
		.text = db_text(a, q, COL_kept_rows_text),
		.preferred = db_i32(q, COL_kept_rows_preferred),
		.edition = db_i64(q, COL_kept_rows_edition),
		.created_ms = db_i64(q, COL_kept_rows_created_ms),
		.updated_ms = db_i64(q, COL_kept_rows_updated_ms),
	};
}

static bool is_of_experiment(struct db_rows *q, const char *experiment)
{
	return !experiment || !strcmp(db_str(q, COL_kept_rows_experiment), experiment);
}

int saved_view_list(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_views *ret,
		    struct err *err)
{
	struct saved_views l = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_kept_rows, err, "t", sel->shelf);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = 0;
		if (!is_of_experiment(q, sel->experiment))
			continue;
		l.items = list_room(a, l.items, l.count, sizeof *l.items);
		if (l.items)
			l.items[l.count++] = read_kept_row(a, q);
		else
			rc = db_no_memory(q, err);
	}
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}

static int read_editions(struct db *d, struct arena *a, struct saved_view *k, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_editions, err, "i", k->id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = 0;
		k->editions = list_room(a, k->editions, k->edition_count, sizeof *k->editions);
		if (k->editions)
			k->editions[k->edition_count++] = (struct saved_view_edition){
				db_i64(q, COL_kept_editions_edition), db_i64(q, COL_kept_editions_written_ms)
			};
		else
			rc = db_no_memory(q, err);
	}
	return rc;
}

static int find_kept(struct db *d, const struct saved_view_sel *sel, struct arena *a, struct saved_view *k,
		     struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_row, err, "tii", sel->shelf, sel->id, sel->edition);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	*k = read_kept_row(a, q);
	db_stop(q);
	return read_editions(d, a, k, err);
}

int saved_view_get(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
		   struct err *err)
{
	struct saved_view k = { 0 };
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = find_kept(d, sel, a, &k, err);
	readers_give(s, d);
	if (!rc)
		*ret = k;
	return rc;
}

static int find_preferred(struct db *d, const struct saved_view_sel *sel, struct arena *a, struct saved_view *k,
			  struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_kept_preferred, err, "tt", sel->shelf, sel->experiment);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	*k = read_kept_row(a, q);
	db_stop(q);
	return 0;
}

int saved_view_preferred(struct store *s, const struct saved_view_sel *sel, struct arena *a, struct saved_view *ret,
			 struct err *err)
{
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = find_preferred(d, sel, a, ret, err);
	readers_give(s, d);
	return rc;
}
