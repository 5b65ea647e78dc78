/* fold_rows.h: the rows that folding reads and writes: series and the chunks at their ends. On a remote database
 * they are read ahead and written in sets. Private to web/store/points. */
#ifndef DPT_STORE_FOLD_ROWS_H
#define DPT_STORE_FOLD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/db/db.h"
#include "web/store/points/series_summary.h"

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

int fold_rows_new(struct fold_rows **ret, struct db *d, struct err *err);
void fold_rows_free(struct fold_rows *f); /* NULL is fine */

/* Reads the rows of the next series ahead, at most FOLD_AHEAD, and then the chunks they need. */
int fold_rows_ahead(struct fold_rows *f, const int64_t *series, size_t n, struct err *err);
int fold_rows_chunks_ahead(struct fold_rows *f, const int64_t *chunks, size_t n, struct err *err);

int fold_rows_series(struct fold_rows *f, int64_t id, struct fold_series *ret, struct err *err);
int fold_rows_chunk(struct fold_rows *f, int64_t id, struct point_tail *to, struct err *err); /* appends its points */

/* Replaces the chunks from `number` on by those put after this call. s->chunks: the count before, chunks: after. */
int fold_rows_replace(struct fold_rows *f, const struct fold_series *s, int64_t number, int64_t chunks,
		      struct err *err);
int fold_rows_put_chunk(struct fold_rows *f, int64_t id, const struct sum_point *p, unsigned n, struct err *err);
int fold_rows_put_series(struct fold_rows *f, const struct fold_series *s, struct err *err);

/* Writes all rows that were put. */
int fold_rows_flush(struct fold_rows *f, struct err *err);

#endif
