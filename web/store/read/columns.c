/* columns.c: rows and columns of the runs in memory. */
#include "web/store/read/columns.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/base/list.h"
#include "web/store/db/array.h"

#define COLUMNS_MAX (FILTER_MAX_FIELDS + 16) /* one search never drops its own */
#define CELL_BYTES_MAX ((size_t)96 << 20) /* of all columns; the one not used for longest goes first */
/* more changed runs than this and a quarter of all: everything is read anew */
#define CHANGED_MAX 2000

struct column {
	enum filter_entity entity;
	char *key;
	int64_t key_id;
	struct columns_cell *cells;
	size_t cap;
	uint64_t used; /* the search that asked for it last */
};

struct columns {
	pthread_mutex_t lock;
	bool loaded;
	uint64_t rev, clock;
	char rows_of[DB_ROWS_OF_BYTES]; /* whose rows these are (the query changes_now) */
	struct columns_row *rows;
	size_t count, cap;
	size_t changes; /* since everything was read: their old texts still take room */
	struct arena *texts;
	struct column columns[COLUMNS_MAX];
	size_t column_count;
};

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "store: out of memory");
}

struct columns *columns_new(void)
{
	struct columns *c = calloc(1, sizeof *c);

	if (c)
		pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void drop_column(struct columns *c, size_t i)
{
	free(c->columns[i].key);
	free(c->columns[i].cells);
	c->columns[i] = c->columns[--c->column_count];
}

static void drop_all(struct columns *c)
{
	while (c->column_count)
		drop_column(c, c->column_count - 1);
	free(c->rows);
	c->rows = NULL;
	c->count = c->cap = c->changes = 0;
	arena_free(c->texts);
	c->texts = NULL;
	c->loaded = false;
}

void columns_free(struct columns *c)
{
	if (!c)
		return;
	drop_all(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Few different words, many rows. */
static const char *status_word(struct arena *a, const char *text)
{
	static const char *const words[] = { "running", "finished", "failed", "killed", "preempted", "scheduled" };
	size_t i;

	for (i = 0; i < sizeof words / sizeof words[0]; i++)
		if (!strcmp(words[i], text))
			return words[i];
	return arena_strdup(a, text);
}

bool columns_read_row(struct db_rows *q, struct arena *a, struct columns_row *ret)
{
	const char *user = db_str(q, COL_runs_all_user);

	memset(ret, 0, sizeof *ret);
	ret->id = db_i64(q, COL_runs_all_id);
	snprintf(ret->uuid, sizeof ret->uuid, "%s", db_str(q, COL_runs_all_uuid));
	ret->name = arena_strdup(a, db_str(q, COL_runs_all_name));
	ret->status = status_word(a, db_str(q, COL_runs_all_status));
	ret->start_ms = db_time(q, COL_runs_all_start_ms);
	ret->end_ms = db_time(q, COL_runs_all_end_ms);
	ret->deleted = db_i32(q, COL_runs_all_deleted);
	ret->experiment_id = db_i64(q, COL_runs_all_experiment_id);
	ret->user = user && *user ? arena_strdup(a, user) : "";
	return ret->name && ret->status && ret->user;
}

static int add_row(struct columns *c)
{
	size_t cap = c->cap ? c->cap * 2 : 256, i;
	void *grown;

	if (c->count == c->cap) {
		grown = realloc(c->rows, cap * sizeof *c->rows);
		if (!grown)
			return ERR_NOMEM;
		c->rows = grown;
		c->cap = cap;
	}
	for (i = 0; i < c->column_count; i++) {
		struct column *col = &c->columns[i];

		if (c->count >= col->cap) {
			grown = realloc(col->cells, c->cap * sizeof *col->cells);
			if (!grown)
				return ERR_NOMEM;
			col->cells = grown;
			col->cap = c->cap;
		}
		memset(&col->cells[c->count], 0, sizeof *col->cells);
	}
	c->count++;
	return 0;
}

/* Room for a run at this place, before those that lie there and behind it. */
static int insert_row(struct columns *c, size_t row)
{
	size_t i, behind = c->count - row;

	if (add_row(c))
		return ERR_NOMEM;
	memmove(&c->rows[row + 1], &c->rows[row], behind * sizeof *c->rows);
	memset(&c->rows[row], 0, sizeof c->rows[row]);
	for (i = 0; i < c->column_count; i++) {
		struct columns_cell *cells = c->columns[i].cells;

		memmove(&cells[row + 1], &cells[row], behind * sizeof *cells);
		memset(&cells[row], 0, sizeof cells[row]);
	}
	return 0;
}

double columns_number(struct db_rows *q, enum filter_aggregate which)
{
	static const enum db_column at[] = { COL_metric_column_last, COL_metric_column_first, COL_metric_column_min,
					     COL_metric_column_max };

	return db_f64(q, at[which]);
}

static int put_cell(struct columns *c, const struct column *col, size_t row, struct db_rows *q)
{
	struct columns_cell *cell = &col->cells[row];
	int i;

	cell->present = true;
	if (col->entity == FILTER_METRIC) {
		cell->is_number = true;
		for (i = 0; i < 4; i++)
			cell->number[i] = columns_number(q, (enum filter_aggregate)i);
		return 0;
	}
	cell->text = arena_strdup(c->texts, db_str(q, COL_param_column_value));
	cell->is_number = cell->text && col->entity == FILTER_PARAM && filter_number(cell->text, &cell->number[0]);
	return cell->text ? 0 : ERR_NOMEM;
}

enum part { CELL, CELLS, WHOLE }; /* of a column: one run's, those of some runs, all */

static enum db_query query_of(enum filter_entity entity, enum part part)
{
	static const enum db_query params[] = { DB_param_cell, DB_param_cells, DB_param_column };
	static const enum db_query tags[] = { DB_tag_cell, DB_tag_cells, DB_tag_column };
	static const enum db_query metrics[] = { DB_metric_cell, DB_metric_cells, DB_metric_column };

	return entity == FILTER_PARAM ? params[part] : entity == FILTER_TAG ? tags[part] : metrics[part];
}

static int load_cell(struct columns *c, struct db *d, const struct column *col, size_t row, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, query_of(col->entity, CELL), err, "ii", col->key_id, c->rows[row].id);

	memset(&col->cells[row], 0, sizeof col->cells[row]);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = put_cell(c, col, row, q) ? no_memory(err) : 0;
		db_stop(q);
	}
	return rc;
}

/* Of the runs of an array, or of all where that is NULL. */
static int load_cells(struct columns *c, struct db *d, const struct column *col, const char *runs, struct err *err)
{
	size_t row = 0;
	struct db_rows *q;
	int rc = runs ? db_start(d, &q, query_of(col->entity, CELLS), err, "it", col->key_id, runs)
		      : db_start(d, &q, query_of(col->entity, WHOLE), err, "i", col->key_id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		int64_t id = db_i64(q, COL_param_column_run_id);

		rc = 0;
		while (row < c->count && c->rows[row].id < id)
			row++;
		if (row < c->count && c->rows[row].id == id && put_cell(c, col, row, q)) {
			db_stop(q);
			rc = no_memory(err);
		}
	}
	return rc;
}

static int load_all(struct columns *c, struct db *d, struct err *err)
{
	struct db_rows *q;
	int rc;

	drop_all(c);
	c->texts = arena_new();
	if (!c->texts)
		return no_memory(err);
	rc = db_start(d, &q, DB_runs_all, err, "");
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = 0;
		if (add_row(c) || !columns_read_row(q, c->texts, &c->rows[c->count - 1])) {
			db_stop(q);
			rc = no_memory(err);
		}
	}
	c->loaded = !rc;
	return rc;
}

/* together: its cells are only emptied, and the run is added to those that are read in one go. */
static int refresh_run(struct columns *c, struct db *d, struct db_rows *q, struct buf *together, struct err *err)
{
	int64_t id = db_i64(q, COL_runs_all_id);
	size_t row = list_find(c->rows, c->count, sizeof *c->rows, id), i;
	int rc = 0;

	if ((row == c->count || c->rows[row].id != id) && insert_row(c, row))
		return no_memory(err);
	if (!columns_read_row(q, c->texts, &c->rows[row]))
		return no_memory(err);
	c->changes++;
	if (together)
		array_int(together, id);
	for (i = 0; i < c->column_count && !rc; i++)
		if (together)
			memset(&c->columns[i].cells[row], 0, sizeof *c->columns[i].cells);
		else
			rc = load_cell(c, d, &c->columns[i], row, err);
	return rc;
}

/* Where the database is in this process a query a cell costs less than one for all. */
static int refresh_runs(struct columns *c, struct db *d, struct err *err)
{
	struct buf runs, *together = db_shared(d) ? &runs : NULL;
	const char *text;
	struct db_rows *q;
	size_t i;
	int rc = db_start(d, &q, DB_runs_since, err, "i", (int64_t)c->rev);

	array_begin(&runs);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = refresh_run(c, d, q, together, err);
		if (rc)
			db_stop(q);
	}
	text = array_end(&runs);
	if (!rc && !text)
		rc = no_memory(err);
	for (i = 0; together && i < c->column_count && !rc; i++)
		rc = load_cells(c, d, &c->columns[i], text, err);
	buf_done(&runs);
	return rc;
}

static int refresh(struct columns *c, struct db *d, struct err *err)
{
	struct db_rows *q;
	size_t row;
	int rc = refresh_runs(c, d, err);

	if (!rc)
		rc = db_start(d, &q, DB_gone_since, err, "i", (int64_t)c->rev);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		row = list_find(c->rows, c->count, sizeof *c->rows, db_i64(q, COL_gone_since_run_id));
		if (row < c->count && c->rows[row].id == db_i64(q, COL_gone_since_run_id))
			c->rows[row].gone = true;
		rc = 0;
	}
	return rc;
}

/* Under the lock: the newest change of d's snapshot. Of other rows than before nothing is good: a standby that took
 * over may lack some, and count on. */
static int read_rev(struct columns *c, struct db *d, int64_t *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_changes_now, err, "");

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret = db_i64(q, COL_changes_now_rev);
	if (strcmp(c->rows_of, db_str(q, COL_changes_now_rows_of)))
		drop_all(c);
	snprintf(c->rows_of, sizeof c->rows_of, "%s", db_str(q, COL_changes_now_rows_of));
	db_stop(q);
	return 0;
}

int columns_take(struct columns *c, struct db *d, struct err *err)
{
	int64_t rev = 0, changed = 0;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = read_rev(c, d, &rev, err);
	if (rc) {
		pthread_mutex_unlock(&c->lock);
		return rc;
	}
	if (c->loaded && (uint64_t)rev < c->rev) {
		pthread_mutex_unlock(&c->lock);
		return err_set(err, ERR_BUSY, "store: an old snapshot");
	}
	if (c->loaded && (uint64_t)rev > c->rev && db_int(d, &changed, DB_changed_since, err, "i", (int64_t)c->rev) < 0)
		rc = err ? err->code : ERR_IO;
	if (!rc && (!c->loaded || (size_t)changed > CHANGED_MAX + c->count / 4 || c->changes > 1000 + 4 * c->count))
		rc = load_all(c, d, err);
	else if (!rc && changed)
		rc = refresh(c, d, err);
	c->rev = (uint64_t)rev;
	c->clock++;
	if (rc) {
		drop_all(c);
		pthread_mutex_unlock(&c->lock);
	}
	return rc;
}

void columns_give(struct columns *c)
{
	pthread_mutex_unlock(&c->lock);
}

const struct columns_row *columns_rows(const struct columns *c, size_t *ret_count)
{
	*ret_count = c->count;
	return c->rows;
}

/* Room for one more; columns of the search under way stay. */
static void make_room(struct columns *c)
{
	size_t fit = CELL_BYTES_MAX / ((c->cap ? c->cap : 1) * sizeof(struct columns_cell)), i, oldest;

	fit = fit < 8 ? 8 : fit > COLUMNS_MAX - 1 ? COLUMNS_MAX - 1 : fit;
	while (c->column_count > fit) {
		for (i = 0, oldest = 0; i < c->column_count; i++)
			if (c->columns[i].used < c->columns[oldest].used)
				oldest = i;
		if (c->columns[oldest].used == c->clock)
			return;
		drop_column(c, oldest);
	}
}

int columns_get(struct columns *c, struct db *d, enum filter_entity entity, const char *key,
		const struct columns_cell **ret, struct err *err)
{
	struct column col = { .entity = entity, .used = c->clock, .cap = c->cap };
	size_t i;
	int rc;

	for (i = 0; i < c->column_count; i++)
		if (c->columns[i].entity == entity && !strcmp(c->columns[i].key, key)) {
			c->columns[i].used = c->clock;
			*ret = c->columns[i].cells;
			return 0;
		}
	*ret = NULL;
	rc = db_int(d, &col.key_id, DB_key_by_name, err, "t", key);
	if (rc <= 0)
		return rc;
	make_room(c);
	col.cells = calloc(c->cap ? c->cap : 1, sizeof *col.cells);
	col.key = strdup(key);
	rc = col.cells && col.key ? load_cells(c, d, &col, NULL, err) : no_memory(err);
	if (rc) {
		free(col.cells);
		free(col.key);
		return rc;
	}
	c->columns[c->column_count++] = col;
	*ret = col.cells;
	return 0;
}
