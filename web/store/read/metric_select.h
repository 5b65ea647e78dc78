/* metric_select.h: the metrics of a list's runs where only some are asked for, and how many of the runs have each key, counted
 * by the sets of keys that runs share. Private to web/store. */
#ifndef DPT_STORE_METRIC_SELECT_H
#define DPT_STORE_METRIC_SELECT_H

#include "web/store/db/db.h"
#include "web/store/read/query.h"

struct buf;
struct keysets;
struct map;

/* The runs of a list, and what is asked of them. */
struct metric_select_list {
	const struct query_runs_opts *o;
	const int64_t *runs;
	size_t run_count;
	bool keys; /* every key is to be known; else those that o names are enough */
};

struct metric_select {
	struct keysets *sets; /* NULL: only the metrics that were asked for are known */
	struct map *of_runs; /* int64 id of a run -> the set of its keys; NULL: not known */
	struct map *keys; /* int64 id of a key -> what is known of it */
	struct metric_select_key **wanted; /* of these metrics are loaded */
	size_t wanted_count;
	bool all;         /* every metric is loaded */
};

/* Counts the keys of the runs and marks those that are loaded: what is asked for, and what alerts are made of. */
int metric_select_begin(struct metric_select *c, struct keysets *sets, struct db *d, const struct metric_select_list *l, struct err *err);
void metric_select_end(struct metric_select *c); /* zeroed is fine */

/* Fills r->metrics with the marked ones that the run has, sorted by key. */
int metric_select_load(const struct metric_select *c, struct db *d, int64_t run_id, struct arena *a, struct query_run *r,
		struct err *err);

/* Adds the ids of the marked ones' keys to an array (array.h). */
void metric_select_list_wanted(const struct metric_select *c, struct buf *b);

/* Leaves only those that were asked for. */
void metric_select_trim(const struct metric_select *c, struct query_run *r);

/* Every key that any of the runs has, with the number of those that have it, sorted. */
int metric_select_keys(const struct metric_select *c, struct arena *a, struct query_runs *ret, struct err *err);

#endif
