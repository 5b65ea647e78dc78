/* columns.h: what searches look at, kept in memory: one row a run and one column a param, tag or metric that was asked
 * for. Filled when first needed, brought up to date by the runs that changed since (run.rev), bounded. Private to
 * web/store. */
#ifndef DPT_STORE_COLUMNS_H
#define DPT_STORE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "web/store/db/db.h"
#include "web/store/filter/filter.h"

struct columns;

struct columns_row {
	int64_t id; /* first: they are looked for by it */
	char uuid[33];
	bool deleted;
	int64_t start_ms, end_ms, experiment_id;
	const char *name, *status, *user;
};

/* What decides of most runs that a search passes them over, apart from the rows: of 100,000 runs it fits a cache. */
struct columns_mark {
	int64_t experiment_id;
	bool deleted, gone; /* gone: removed for good since, to be passed over */
};

struct columns_cell {
	bool present, is_number; /* of a param: its text is a number, number[0] */
	const char *text;        /* NULL for metrics */
	double number[4];        /* of metrics by enum filter_aggregate */
};

struct columns *columns_new(void); /* NULL when out of memory */
void columns_free(struct columns *c); /* NULL is fine */

/* Takes the columns for one search, as they are in the snapshot of d or later. They stay as they are until
 * columns_give. ERR_BUSY: they are newer than the snapshot; take another one. */
int columns_take(struct columns *c, struct db *d, struct err *err);
void columns_give(struct columns *c);

const struct columns_row *columns_rows(const struct columns *c, size_t *ret_count); /* by id */
const struct columns_mark *columns_marks(const struct columns *c);                  /* one a row */

/* A cell a row; *ret NULL when no run can have that key. entity: param, tag or metric. */
int columns_get(struct columns *c, struct db *d, enum filter_entity entity, const char *key,
		const struct columns_cell **ret, struct err *err);

/* A row as the queries runs_all, run_row, … give it; texts go to the arena. False: out of memory. */
bool columns_read_row(struct db_rows *q, struct arena *a, struct columns_row *ret);

/* Of a row of metric_column or metric_cell. */
double columns_number(struct db_rows *q, enum filter_aggregate which);

#endif
