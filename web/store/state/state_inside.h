/* SPDX-License-Identifier: Apache-2.0 */
/* state_inside.h: shared by the state*.c files. Private to them. */
#ifndef DPT_STORE_STATE_INSIDE_H
#define DPT_STORE_STATE_INSIDE_H

#include "web/store/state/state.h"

#define STATE_FULL_MAX 16 /* runs folded at once */

/* The last points of a series that is watched for spikes. */
struct state_recent {
	bool loaded;
	unsigned count;
	struct sum_point points[SPIKE_CONTEXT];
	double weight; /* weight of the worst spike reported */
};

struct state_list {
	void **items;
	size_t count, cap;
};

struct state {
	struct db *db;
	bool shared;	     /* other processes write the same rows: those cached are valid only under their lock */
	int64_t session;     /* of the connection that read the cached rows */
	struct arena *arena; /* strings and segments of runs */
	struct map *runs, *run_uuids, *keys, *series, *metrics, *writers;
	struct map *run_keys; /* (run, key) pairs that have series */
	struct map *recent;   /* last points of watched series (state_series.c) */
	size_t cache_bytes;   /* kept between commits */
	struct state_list dirty_runs, dirty_metrics;
	int64_t full[STATE_FULL_MAX]; /* ids of runs with many rows in the log */
	size_t full_count;
	int64_t slots, group;	   /* slots: given so far; group: of this transaction */
	int64_t made_experiment;   /* as state_made_experiment */
	const char *made_name;
	struct db_rows *next_runs; /* numbers for new runs of this transaction; NULL: none */
};

#endif
