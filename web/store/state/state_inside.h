/* state_inside.h: what state.c, state_run.c and state_series.c share. Private to them. */
#ifndef DPT_STORE_STATE_INSIDE_H
#define DPT_STORE_STATE_INSIDE_H

#include "web/store/base/map.h"
#include "web/store/points/spike.h"
#include "web/store/state/state.h"

#define STATE_FULL_MAX 16 /* that are folded at once */

/* What a series that is watched for spikes ended with. */
struct state_recent {
	bool loaded;
	unsigned count;
	struct sum_point points[SPIKE_CONTEXT];
	double weight; /* of the worst spike that was told */
};

struct state_list {
	void **items;
	size_t count, cap;
};

struct state {
	struct db *db;
	struct arena *arena; /* texts and segments of runs */
	struct map *runs, *run_uuids, *keys, *series, *metrics, *writers;
	struct map *run_keys; /* (run, key) that have series */
	struct map *recent;   /* what watched series end with (state_spikes.c) */
	size_t cache_bytes;   /* kept between commits where others write too */
	struct state_list dirty_runs, dirty_metrics;
	int64_t full[STATE_FULL_MAX]; /* runs with many rows in the log */
	size_t full_count;
	int64_t rev; /* the number that was given last; -1: it stands in the rows alone */
	int64_t slots, group; /* given so far; of this transaction */
	struct db_rows *next_runs; /* numbers of runs to be made in this transaction; NULL: none */
	bool out_of_memory;
};

int state_no_memory(struct err *err);
void state_list_add(struct state *st, struct state_list *l, void *item); /* a failure shows when it is flushed */

#endif
