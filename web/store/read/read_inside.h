/* SPDX-License-Identifier: Apache-2.0 */
/* read_inside.h: parts of queries: runs with their data, metrics and params of a list of runs, the values of a search's
 * fields, the series that a selection covers. Private to web/store. */
#ifndef DPT_STORE_READ_INSIDE_H
#define DPT_STORE_READ_INSIDE_H

#include "web/store/points/series_summary.h"
#include "web/store/read/columns.h"
#include "web/store/read/points.h"
#include "web/store/read/query.h"

struct buf;
struct keysets;
struct map;

/* The id of an experiment that the reader may see. ERR_NOENT. */
int experiment_named(struct db *d, const char *name, int64_t *ret, struct err *err);

/* --- metric_select.c ------------------------------------------------------------------------------------------ */

/* Selects the metrics of a list of runs where only some are requested, and counts how many runs have each key. Runs
 * share few sets of keys, so it counts set by set. The runs of a list and the options of the request. */
struct metric_select_list {
	const struct query_runs_opts *o;
	const int64_t *runs;
	size_t run_count;
	bool keys; /* find every key; else only those named by o */
};

struct metric_select {
	struct map *keys;		   /* int64 key id -> struct metric_select_key */
	struct metric_select_key **wanted; /* the metrics to load */
	size_t wanted_count;
	bool all; /* every metric is loaded */
};

/* Counts the keys of the runs and marks those to load: the requested ones and those that alerts need. */
int metric_select_begin(struct metric_select *c, struct keysets *sets, struct db *d, const struct metric_select_list *l,
			struct err *err);
void metric_select_end(struct metric_select *c); /* zeroed is fine */

/* Appends the key ids of the marked ones to an array (db.h). */
void metric_select_list_wanted(const struct metric_select *c, struct buf *b);

/* Removes the metrics that were not requested. */
void metric_select_trim(const struct metric_select *c, struct query_run *r);

/* Lists every key that any of the runs has, with the number of runs that have it, sorted. */
void metric_select_keys(const struct metric_select *c, struct arena *a, struct query_runs *ret);

/* Converts a stored summary to a metric of a run; key is borrowed. */
void metric_of(struct query_metric *m, const char *key, const struct sum *s);

/* Returns true if non-finite values of this metric cause an alert. */
bool metric_is_loss(const char *key);

/* --- detail.c: runs with their data, in an arena -------------------------------------------------------------- */

/* The runs, and what to load in addition to their columns. */
struct detail_want {
	const int64_t *ids;
	unsigned parts;			    /* bits of enum query_part */
	const struct metric_select *chosen; /* NULL: every metric */
};

/* One run with all parts. ERR_NOENT, without a text: there is no such run. */
int detail_load(struct db *d, int64_t run_id, struct arena *a, struct query_run *ret, struct err *err);

/* The ret->count runs of want->ids, by one query for each part. ERR_NOENT when one is missing. */
int detail_load_all(struct db *d, const struct detail_want *want, struct arena *a, struct query_runs *ret,
		    struct err *err);

/* Loads what only the page of one run shows: environment, segments, ranks, problems. */
int detail_load_rest(struct db *d, int64_t run_id, struct arena *a, struct query_run *run, struct err *err);

/* Loads the series of every rank and segment: may be millions. */
int detail_load_series(struct db *d, int64_t run_id, struct arena *a, struct query_run *run, struct err *err);

/* --- run_params.c --------------------------------------------------------------------------------------------- */

/* Fills the params of ret->items, whose row numbers are l->runs. With o = l->o: sends all keys if the runs have at
 * most o->params_max, else that many, chosen in this order: those in o->params, in its order; those whose values
 * differ (or that only some runs have); the others, by name with digits as numbers. Sets ret->params_left_out if
 * some are missing. */
int run_params_load(struct db *d, const struct metric_select_list *l, struct arena *a, struct query_runs *ret,
		    struct err *err);

/* --- series_select.c: the series of one run that a selection of points covers --------------------------------- */

struct series_select_series {
	int64_t id;
	const char *key;
	int rank, segment;
	int64_t hide; /* points are hidden from this step on: hide_has, hide_last */
	int64_t chunks;
	bool ordered; /* the folded points are in order of steps */
	struct sum folded;
};

struct series_select_run {
	int64_t id;
	const char *uuid, *name;
	int64_t rev;
	double start_s;			     /* NaN: unknown */
	double steps_per_epoch;		     /* 1 if the run has no such param */
	struct series_select_series *series; /* by key, rank, segment */
	size_t count;
};

struct series_select_want {
	const struct points_sel *sel;
	const char *uuid; /* of the run; borrowed by the result */
};

/* 1: found, 0: no such run, negative: failed. */
int series_select_run(struct db *d, const struct series_select_want *want, struct arena *a,
		      struct series_select_run *ret, struct err *err);

/* --- cells.c: the values of a search's fields for a run ------------------------------------------------------- */

struct cells_experiment {
	int64_t id;
	const char *name;
};

/* From the store's columns, or by queries where the search names its runs. d and a (texts of queries) belong to the
 * search. */
struct cells {
	struct db *d;
	struct arena *a;
	const struct filter *f;
	bool mlflow;
	int64_t now_ms;					       /* of the search; set by cells_begin */
	const struct columns_row *base;			       /* of the columns; NULL: rows are read by queries */
	const struct columns_cell *columns[FILTER_MAX_FIELDS]; /* NULL: no run has the key, or the field is not a
								* column */
	int64_t key[FILTER_MAX_FIELDS];			       /* used without columns; 0: no run has the key */
	struct cells_experiment *experiments;		       /* by id; loaded only if a field uses them */
	size_t experiment_count;
};

/* columns: taken until the last cell is read; NULL: cells are read from d. */
int cells_begin(struct cells *c, struct columns *columns, struct err *err);

/* Texts are borrowed from the columns or the arena. */
int cells_get(struct cells *c, const struct columns_row *r, size_t field, struct filter_value *ret, struct err *err);

#endif
