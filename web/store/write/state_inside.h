/* state_inside.h: what state.c, state_run.c and state_series.c share. Private to them. */
#ifndef DPT_STORE_STATE_INSIDE_H
#define DPT_STORE_STATE_INSIDE_H

#include "web/store/base/map.h"
#include "web/store/write/state.h"

struct state_list {
	void **items;
	size_t count, cap;
};

struct state {
	struct db *db;
	struct arena *arena; /* texts and segments of runs */
	struct map *runs, *run_uuids, *keys, *series, *metrics, *writers;
	struct map *run_keys; /* (run, key) that have series */
	struct state_list dirty_runs, dirty_metrics;
	int64_t rev; /* the number that was given last; -1: it stands in the rows alone */
	int64_t slots, group; /* given so far; of this transaction */
	bool out_of_memory;
};

int state_no_memory(struct err *err);
void state_list_add(struct state *st, struct state_list *l, void *item); /* a failure shows when it is flushed */

#endif
