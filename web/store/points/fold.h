/* fold.h: the compactor: moves points from the ingest log into chunks of their series, inside a transaction of the
 * caller, on the read-write connection. What a reader sees stays the same. */
#ifndef DPT_STORE_FOLD_H
#define DPT_STORE_FOLD_H

#include <stdint.h>

#include "web/store/db/db.h"

struct fold_result {
	uint64_t rows, points;
	int64_t *alerted; /* ids of runs with a new alert; free() */
	size_t alerted_count;
};

struct fold_bound {
	uint64_t points; /* it goes on until so many are folded, or as many series as one transaction should hold */
	/* Where other processes write too: all rows of some runs that have one up to last_row, and of these runs. */
	int64_t last_row;
	const int64_t *runs;
	size_t run_count;
};

/* Takes log rows, oldest first. */
int fold_some(struct db *d, const struct fold_bound *bound, struct fold_result *ret, struct err *err);

#endif
