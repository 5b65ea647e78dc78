/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h: the data that searches read, in memory: one row per run and one column per param, tag or metric in use.
 * A column is loaded when first needed and updated from the runs that changed since (run.rev). Memory is bounded.
 * Private to web/store. */
#ifndef DPT_STORE_COLUMNS_H
#define DPT_STORE_COLUMNS_H

#include "web/store/db/db.h"
#include "web/store/filter/filter.h"

struct columns;

struct columns_row {
	int64_t id; /* first member, for list_find */
	char uuid[33];
	bool deleted;
	int64_t start_ms, end_ms, experiment_id, last_step;
	const char *name, *status, *user;
};

/* What excludes most runs from a search, apart from the rows: for 100,000 runs it fits into a CPU cache. */
struct columns_mark {
	int64_t experiment_id;
	bool deleted, gone; /* gone: removed for good, skip it */
};

struct columns_cell {
	bool present, is_number; /* is_number of a param: its text parses as number[0] */
	const char *text;	 /* NULL for metrics */
	double number[4];	 /* of metrics, by enum filter_aggregate */
};

struct columns *columns_new(void);
void columns_free(struct columns *c); /* NULL is fine */

/* Locks the columns for one search, updated to the snapshot of d. They do not change until columns_give. ERR_BUSY:
 * they are newer than the snapshot: take a new one. */
int columns_take(struct columns *c, struct db *d, struct err *err);
void columns_give(struct columns *c);

const struct columns_row *columns_rows(const struct columns *c, size_t *ret_count); /* by id */
const struct columns_mark *columns_marks(const struct columns *c);		    /* one per row */

/* One cell per row; *ret NULL when no run can have that key. The entity is param, tag, metric or note. */
int columns_get(struct columns *c, struct db *d, const struct filter_field *of, const struct columns_cell **ret,
		struct err *err);

/* Reads a row of the queries runs_all, run_row, …; texts are copied to the arena. */
void columns_read_row(struct db_rows *q, struct arena *a, struct columns_row *ret);

/* Reads a row of metric_column or metric_cell. */
double columns_number(struct db_rows *q, enum filter_aggregate which);

#endif
