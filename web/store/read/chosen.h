/* chosen.h: the metrics of a list's runs where only some are asked for, and how many of the runs have each key, counted
 * by the sets of keys that runs share. Private to web/store. */
#ifndef DPT_STORE_CHOSEN_H
#define DPT_STORE_CHOSEN_H

#include "web/store/db/db.h"
#include "web/store/read/query.h"

struct buf;
struct keysets;
struct map;

/* The runs of a list, and what is asked of them. */
struct chosen_list {
	const struct query_runs_opts *o;
	const int64_t *runs;
	size_t run_count;
	bool keys; /* every key is to be known; else those that o names are enough */
};

struct chosen {
	struct keysets *sets; /* NULL: only the metrics that were asked for are known */
	struct map *of_runs; /* int64 id of a run -> the set of its keys; NULL: not known */
	struct map *keys; /* int64 id of a key -> what is known of it */
	struct chosen_key **wanted; /* of these metrics are loaded */
	size_t wanted_count;
	bool all;         /* every metric is loaded */
};

/* Counts the keys of the runs and marks those that are loaded: what is asked for, and what alerts are made of. */
int chosen_begin(struct chosen *c, struct keysets *sets, struct db *d, const struct chosen_list *l, struct err *err);
void chosen_end(struct chosen *c); /* zeroed is fine */

/* Fills r->metrics with the marked ones that the run has, sorted by key. */
int chosen_load(const struct chosen *c, struct db *d, int64_t run_id, struct arena *a, struct query_run *r,
		struct err *err);

/* Adds the ids of the marked ones' keys to an array (array.h). */
void chosen_list_wanted(const struct chosen *c, struct buf *b);

/* Leaves only those that were asked for. */
void chosen_trim(const struct chosen *c, struct query_run *r);

/* Every key that any of the runs has, with the number of those that have it, sorted. */
int chosen_keys(const struct chosen *c, struct arena *a, struct query_runs *ret, struct err *err);

#endif
