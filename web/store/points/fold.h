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

/* Takes log rows, oldest first, until at least max_points (or as many series as one transaction should hold) are
 * folded. */
int fold_some(struct db *d, uint64_t max_points, struct fold_result *ret, struct err *err);

#endif
