/* fold.h: folding: moves points from the ingest log to the chunks of their series, in a transaction of the caller on
 * the read-write connection. Readers see no difference. */
#ifndef DPT_STORE_FOLD_H
#define DPT_STORE_FOLD_H

#include <stdint.h>

#include "web/store/db/db.h"

struct fold_result {
	uint64_t rows, points;
	int64_t *alerted; /* ids of runs with a new alert; to be freed */
	size_t alerted_count;
};

struct fold_bound {
	uint64_t points; /* stops after this many, or after as many series as one transaction should have */
	/* With other writers: fold all rows of some runs that have one up to last_row, and of these runs. */
	int64_t last_row;
	const int64_t *runs;
	size_t run_count;
};

/* Folds log rows, oldest first. */
int fold_some(struct db *d, const struct fold_bound *bound, struct fold_result *ret, struct err *err);

#endif
