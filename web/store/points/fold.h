/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h: folding: moves points from the ingest log to the chunks of their series, in a transaction of the caller on
 * the read-write connection. Readers see no difference. */
#ifndef DPT_STORE_FOLD_H
#define DPT_STORE_FOLD_H

#include "web/store/points/series_summary.h"

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

/* --- fold_rows.c: private to web/store/points ----------------------------------------------------------------- */

/* The rows that folding reads and writes, in sets: series and the chunks at their ends. */
#define FOLD_AHEAD 256 /* series read and written at once */
#define FOLD_PIECES 16 /* most pieces at the end of a series */

/* A series. Its full chunks (CHUNK_POINTS) are followed by pieces, which are not full. Usually one; on a remote
 * database several, because there a new row is cheaper than a rewritten one. */
struct fold_series {
	int64_t id, run_id, key_id, chunks;
	int rank;
	bool ordered, watched; /* watched: for loss spikes */
	struct sum sum;
	unsigned pieces, piece_points[FOLD_PIECES];
};

struct fold_rows;

struct fold_rows *fold_rows_new(struct db *d);
void fold_rows_free(struct fold_rows *f);

/* Reads the rows of the next series, at most FOLD_AHEAD, and then the chunks they need. */
int fold_rows_ahead(struct fold_rows *f, const int64_t *series, size_t n, struct err *err);
int fold_rows_chunks_ahead(struct fold_rows *f, const int64_t *chunks, size_t n, struct err *err);

/* Of those that were read. */
int fold_rows_series(struct fold_rows *f, int64_t id, struct fold_series *ret, struct err *err);
void fold_rows_chunk(struct fold_rows *f, int64_t id, struct point_tail *to); /* appends its points, if it was read */

void fold_rows_drop(struct fold_rows *f, const struct fold_series *s, int64_t number); /* the chunks from `number` on */
int fold_rows_put_chunk(struct fold_rows *f, int64_t id, const struct sum_point *p, unsigned n, struct err *err);
int fold_rows_put_series(struct fold_rows *f, const struct fold_series *s, struct err *err);

/* Writes all rows that were put. */
int fold_rows_flush(struct fold_rows *f, struct err *err);

#endif
