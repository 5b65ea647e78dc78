/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c: rows and columns of the runs in memory. */
#include "tracker/event/event.h"
#include "tracker/mem/mem.h"
#include "web/store/read/columns.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS_MAX (FILTER_MAX_FIELDS + 16) /* a search never evicts its own columns */
#define CELL_BYTES_MAX ((size_t)96 << 20)    /* limit for all columns; the least recently used is evicted first */
/* with more changed runs than this plus a quarter of all, everything is read again */
#define CHANGED_MAX 2000

struct loaded_column {
	enum filter_entity entity;
	char *key;
	int64_t key_id;
	struct columns_cell *cells;
	size_t cap;
	uint64_t used; /* clock of the last search that used it */
};

struct columns {
	pthread_mutex_t lock;
	bool loaded;
	uint64_t rev, clock;
	char rows_of[DB_ROWS_OF_BYTES]; /* the database these rows come from (query changes_now) */
	struct columns_row *rows;
	struct columns_mark *marks;
	size_t count, cap;
	size_t changes; /* changes since all rows were read: old strings still use memory */
	struct arena *texts;
	struct loaded_column columns[COLUMNS_MAX];
	size_t column_count;
};

struct columns *columns_new(void)
{
	struct columns *c = mem_zalloc(sizeof(*c));

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
	free(c->marks);
	c->rows = NULL;
	c->marks = NULL;
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

/* Shares the few different words among many rows. */
static const char *status_word(struct arena *a, const char *text)
{
	const char *word;

	for (int i = 0; (word = event_status_name((enum event_status)i)); i++)
		if (!strcmp(word, text))
			return word;
	return arena_strdup(a, text);
}

void columns_read_row(struct db_rows *q, struct arena *a, struct columns_row *ret)
{
	const char *user = db_str(q, COL_runs_all_user);

	memset(ret, 0, sizeof(*ret));
	ret->id = db_i64(q, COL_runs_all_id);
	snprintf(ret->uuid, sizeof(ret->uuid), "%s", db_str(q, COL_runs_all_uuid));
	ret->name = arena_strdup(a, db_str(q, COL_runs_all_name));
	ret->status = status_word(a, db_str(q, COL_runs_all_status));
	ret->start_ms = db_time(q, COL_runs_all_start_ms);
	ret->end_ms = db_time(q, COL_runs_all_end_ms);
	ret->deleted = db_i32(q, COL_runs_all_deleted);
	ret->experiment_id = db_i64(q, COL_runs_all_experiment_id);
	ret->last_step = db_i64(q, COL_runs_all_last_step);
	ret->user = user && *user ? arena_strdup(a, user) : "";
}

static void add_columns_row(struct columns *c)
{
	size_t i;

	if (c->count == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 256;
		c->rows = mem_realloc(c->rows, c->cap * sizeof(*c->rows));
		c->marks = mem_realloc(c->marks, c->cap * sizeof(*c->marks));
	}
	for (i = 0; i < c->column_count; i++) {
		struct loaded_column *col = &c->columns[i];

		if (c->count >= col->cap) {
			col->cells = mem_realloc(col->cells, c->cap * sizeof(*col->cells));
			col->cap = c->cap;
		}
		memset(&col->cells[c->count], 0, sizeof(*col->cells));
	}
	c->count++;
}

/* Makes room for a row at this position and moves the rows after it. */
static void insert_row(struct columns *c, size_t row)
{
	size_t i, after = c->count - row;

	add_columns_row(c);
	memmove(&c->rows[row + 1], &c->rows[row], after * sizeof(*c->rows));
	memset(&c->rows[row], 0, sizeof(c->rows[row]));
	memmove(&c->marks[row + 1], &c->marks[row], after * sizeof(*c->marks));
	for (i = 0; i < c->column_count; i++) {
		struct columns_cell *cells = c->columns[i].cells;

		memmove(&cells[row + 1], &cells[row], after * sizeof(*cells));
		memset(&cells[row], 0, sizeof(cells[row]));
	}
}

double columns_number(struct db_rows *q, enum filter_aggregate which)
{
	static const enum db_column at[] = { COL_metric_column_last, COL_metric_column_first, COL_metric_column_min,
					     COL_metric_column_max };

	double v = db_f64(q, at[which]);

	/* older stores have infinities as extremes */
	return isinf(v) && (which == FILTER_MIN || which == FILTER_MAX) ? NAN : v;
}

static void put_cell(struct columns *c, const struct loaded_column *col, size_t row, struct db_rows *q)
{
	struct columns_cell *cell = &col->cells[row];
	int i;

	cell->present = true;
	if (col->entity == FILTER_METRIC) {
		cell->is_number = true;
		for (i = 0; i < 4; i++)
			cell->number[i] = columns_number(q, (enum filter_aggregate)i);
		return;
	}
	cell->text = arena_strdup(c->texts, db_str(q, COL_param_column_value));
	cell->is_number = col->entity == FILTER_PARAM && filter_number(cell->text, &cell->number[0]);
}

static enum db_query column_query(enum filter_entity entity, bool changed)
{
	static const enum db_query queries[][2] = {
		[FILTER_PARAM] = { DB_param_column, DB_param_cells },
		[FILTER_TAG] = { DB_tag_column, DB_tag_cells },
		[FILTER_METRIC] = { DB_metric_column, DB_metric_cells },
		[FILTER_NOTE] = { DB_note_column, DB_note_cells },
	};

	return queries[entity][changed];
}

static int load_column(struct columns *c, struct db *d, const struct loaded_column *col, struct err *err)
{
	size_t row = 0;
	struct db_rows *q;
	int rc = db_start(d, &q, column_query(col->entity, false), err, "i", col->key_id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		int64_t id = db_i64(q, COL_param_column_run_id);

		while (row < c->count && c->rows[row].id < id)
			row++;
		if (row < c->count && c->rows[row].id == id)
			put_cell(c, col, row, q);
	}
	return rc;
}

static void read_column_row(struct columns *c, struct db_rows *q, size_t row)
{
	struct columns_row *r = &c->rows[row];

	columns_read_row(q, c->texts, r);
	c->marks[row] = (struct columns_mark){ .experiment_id = r->experiment_id, .deleted = r->deleted };
}

static int load_all_rows(struct columns *c, struct db *d, struct err *err)
{
	struct db_rows *q;
	int rc;

	drop_all(c);
	c->texts = arena_new();
	rc = db_start(d, &q, DB_runs_all, err, "");
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		add_columns_row(c);
		read_column_row(c, q, c->count - 1);
	}
	c->loaded = !rc;
	return rc;
}

/* Updates or inserts a row and clears its cells. */
static void refresh_row(struct columns *c, struct db_rows *q)
{
	int64_t id = db_i64(q, COL_runs_all_id);
	size_t row = list_find(c->rows, c->count, sizeof(*c->rows), id), i;

	if (row == c->count || c->rows[row].id != id)
		insert_row(c, row);
	read_column_row(c, q, row);
	for (i = 0; i < c->column_count; i++)
		memset(&c->columns[i].cells[row], 0, sizeof(*c->columns[i].cells));
	c->changes++;
}

static int refresh_rows(struct columns *c, struct db *d, struct db_rows *q, struct err *err)
{
	int rc;

	while ((rc = db_next(d, q, err)) > 0)
		refresh_row(c, q);
	return rc;
}

static int refresh_gone(struct columns *c, struct db *d, struct db_rows *q, struct err *err)
{
	size_t row;
	int rc;

	while ((rc = db_next(d, q, err)) > 0) {
		row = list_find(c->rows, c->count, sizeof(*c->rows), db_i64(q, COL_gone_since_run_id));
		if (row < c->count && c->rows[row].id == db_i64(q, COL_gone_since_run_id))
			c->marks[row].gone = true;
	}
	return rc;
}

/* The query for the changed cells of one kind. */
struct changed_cells {
	enum filter_entity entity;
	struct buf keys; /* of the columns of this kind: an array */
	struct db_rows *rows; /* NULL: there is no such column */
};

static int start_cells(const struct columns *c, struct db *d, struct changed_cells *cells, struct err *err)
{
	bool any = false;
	size_t i;

	array_begin(&cells->keys);
	for (i = 0; i < c->column_count; i++)
		if (c->columns[i].entity == cells->entity) {
			array_int(&cells->keys, c->columns[i].key_id);
			any = true;
		}
	return any ? db_start(d, &cells->rows, column_query(cells->entity, true), err, "ti", array_end(&cells->keys),
			      (int64_t)c->rev) : 0;
}

static const struct loaded_column *find_loaded_column(const struct columns *c, enum filter_entity entity, int64_t key)
{
	size_t i;

	for (i = 0; i < c->column_count; i++)
		if (c->columns[i].entity == entity && c->columns[i].key_id == key)
			return &c->columns[i];
	return NULL;
}

static int read_cells(struct columns *c, struct db *d, const struct changed_cells *cells, struct err *err)
{
	enum db_column key = cells->entity == FILTER_METRIC ? COL_metric_cells_key_id : COL_param_cells_key_id;
	struct db_rows *q = cells->rows;
	int rc = 0;

	while (q && (rc = db_next(d, q, err)) > 0) {
		int64_t id = db_i64(q, COL_param_cells_run_id);
		size_t row = list_find(c->rows, c->count, sizeof(*c->rows), id);
		const struct loaded_column *col = find_loaded_column(c, cells->entity, db_i64(q, key));

		if (col && row < c->count && c->rows[row].id == id)
			put_cell(c, col, row, q);
	}
	return rc;
}

/* Updates the changed rows and their cells. Starts all queries before reading: one round trip on a remote database. */
static int refresh_columns(struct columns *c, struct db *d, struct err *err)
{
	struct changed_cells cells[] = { { .entity = FILTER_PARAM }, { .entity = FILTER_TAG },
					 { .entity = FILTER_METRIC }, { .entity = FILTER_NOTE } };
	enum { KINDS = sizeof(cells) / sizeof(cells[0]) };
	struct db_rows *rows, *gone;
	int rc = db_start(d, &rows, DB_runs_since, err, "i", (int64_t)c->rev), i;

	for (i = 0; i < KINDS && !rc; i++)
		rc = start_cells(c, d, &cells[i], err);
	if (!rc)
		rc = db_start(d, &gone, DB_gone_since, err, "i", (int64_t)c->rev);
	if (!rc)
		rc = refresh_rows(c, d, rows, err);
	for (i = 0; i < KINDS && !rc; i++)
		rc = read_cells(c, d, &cells[i], err);
	for (i = 0; i < KINDS; i++)
		buf_done(&cells[i].keys);
	return rc ? rc : refresh_gone(c, d, gone, err);
}

struct news {
	int64_t rev;	 /* newest change of the snapshot */
	int64_t changed; /* runs changed since the columns' rev */
};

/* Under the lock. Rows of another database invalidate everything: a standby that took over may lack changes and
 * reuse their numbers. */
static int read_columns_news(struct columns *c, struct db *d, struct news *ret, struct err *err)
{
	struct db_rows *now, *since;
	int rc = db_start(d, &now, DB_changes_now, err, "");

	*ret = (struct news){ 0 };
	if (!rc)
		rc = db_start(d, &since, DB_changed_since, err, "i", (int64_t)c->rev);
	if (!rc && (rc = db_next(d, now, err)) > 0) {
		ret->rev = db_i64(now, COL_changes_now_rev);
		if (strcmp(c->rows_of, db_str(now, COL_changes_now_rows_of)))
			drop_all(c);
		snprintf(c->rows_of, sizeof(c->rows_of), "%s", db_str(now, COL_changes_now_rows_of));
		db_stop(now);
		rc = 0;
	}
	if (!rc && (rc = db_next(d, since, err)) > 0) {
		ret->changed = db_i64(since, COL_changed_since_runs);
		db_stop(since);
		rc = 0;
	}
	return rc;
}

/* Updates the columns to the snapshot. */
static int apply_columns_news(struct columns *c, struct db *d, const struct news *n, struct err *err)
{
	if (!c->loaded || (size_t)n->changed > CHANGED_MAX + c->count / 4 || c->changes > 1000 + 4 * c->count)
		return load_all_rows(c, d, err);
	return n->changed ? refresh_columns(c, d, err) : 0;
}

int columns_take(struct columns *c, struct db *d, struct err *err)
{
	struct news n;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = read_columns_news(c, d, &n, err);
	if (!rc && c->loaded && (uint64_t)n.rev < c->rev)
		rc = err_set(err, ERR_BUSY, "store: the snapshot is older than the cache: try again");
	if (rc) {
		pthread_mutex_unlock(&c->lock);
		return rc;
	}
	rc = apply_columns_news(c, d, &n, err);
	c->rev = (uint64_t)n.rev;
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

const struct columns_mark *columns_marks(const struct columns *c)
{
	return c->marks;
}

/* Evicts columns until one more fits; columns of the current search stay. */
static void make_column_room(struct columns *c)
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

int columns_get(struct columns *c, struct db *d, const struct filter_field *of, const struct columns_cell **ret,
		struct err *err)
{
	struct loaded_column col = { .entity = of->entity, .used = c->clock, .cap = c->cap };
	size_t i;
	int rc;

	for (i = 0; i < c->column_count; i++)
		if (c->columns[i].entity == of->entity && !strcmp(c->columns[i].key, of->key)) {
			c->columns[i].used = c->clock;
			*ret = c->columns[i].cells;
			return 0;
		}
	*ret = NULL;
	rc = db_int(d, &col.key_id, DB_key_by_name, err, "t", of->key);
	if (rc < 0 || (!rc && of->entity != FILTER_NOTE))
		return rc;
	make_column_room(c);
	col.cells = mem_array(c->cap, sizeof(*col.cells));
	col.key = mem_strdup(of->key);
	rc = load_column(c, d, &col, err);
	if (rc) {
		free(col.cells);
		free(col.key);
		return rc;
	}
	c->columns[c->column_count++] = col;
	*ret = col.cells;
	return 0;
}
