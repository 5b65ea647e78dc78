/* metric_select.h: selects the metrics of a list of runs where only some are requested, and counts how many runs have
 * each key. Runs share few sets of keys, so it counts set by set. Private to web/store. */
#ifndef DPT_STORE_METRIC_SELECT_H
#define DPT_STORE_METRIC_SELECT_H

#include "web/store/db/db.h"
#include "web/store/points/series_summary.h"
#include "web/store/read/query.h"

struct buf;
struct keysets;
struct map;

/* The runs of a list and the options of the request. */
struct metric_select_list {
	const struct query_runs_opts *o;
	const int64_t *runs;
	size_t run_count;
	bool keys; /* find every key; else only those named by o */
};

struct metric_select {
	struct db *d;
	struct keysets *sets; /* NULL: only the requested metrics are known */
	struct map *of_runs; /* int64 run id -> struct keyset *; NULL: not known */
	struct map *keys; /* int64 key id -> struct metric_select_key */
	struct metric_select_key **wanted; /* the metrics to load */
	size_t wanted_count;
	bool all;         /* every metric is loaded */
};

/* Counts the keys of the runs and marks those to load: the requested ones and those that alerts need. */
int metric_select_begin(struct metric_select *c, struct keysets *sets, struct db *d, const struct metric_select_list *l,
			struct err *err);
void metric_select_end(struct metric_select *c); /* zeroed is fine */

/* Fills r->metrics with the marked ones that the run has, sorted by key. */
int metric_select_load(const struct metric_select *c, int64_t run_id, struct arena *a, struct query_run *r,
		       struct err *err);

/* Appends the key ids of the marked ones to an array (batch.h). */
void metric_select_list_wanted(const struct metric_select *c, struct buf *b);

/* Removes the metrics that were not requested. */
void metric_select_trim(const struct metric_select *c, struct query_run *r);

/* Lists every key that any of the runs has, with the number of runs that have it, sorted. */
int metric_select_keys(const struct metric_select *c, struct arena *a, struct query_runs *ret, struct err *err);

/* Converts a stored summary to a metric of a run. Private to web/store. */
/* key is borrowed. */
void metric_of(struct query_metric *m, const char *key, const struct sum *s);

/* Returns true if non-finite values of this metric cause an alert. */
bool metric_is_loss(const char *key);

#endif
