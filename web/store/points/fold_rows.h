/* fold_rows.h: the rows that folding reads and writes: series and the chunks at their ends. Where the database is
 * elsewhere they are read ahead and written by sets. Private to web/store/points. */
#ifndef DPT_STORE_FOLD_ROWS_H
#define DPT_STORE_FOLD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/db/db.h"
#include "web/store/points/series_summary.h"
#include "web/store/points/tail.h"

#define FOLD_AHEAD 256 /* series whose rows are read, and written, at once */
#define FOLD_PIECES 16 /* that a series ends with at most */

/* A series. Behind its full chunks (CHUNK_POINTS) stand pieces, which are not full: one, or where the database is
 * elsewhere several, because a new one is cheaper there than one that is written anew. */
struct fold_series {
	int64_t id, run_id, key_id, chunks;
	int rank;
	bool ordered, watched; /* watched: for spikes */
	struct sum sum;
	unsigned pieces, piece_points[FOLD_PIECES];
};

struct fold_rows;

int fold_rows_new(struct fold_rows **ret, struct db *d, struct err *err);
void fold_rows_free(struct fold_rows *f); /* NULL is fine */

/* Says which series are next, at most FOLD_AHEAD, and which of their chunks they will want. */
int fold_rows_ahead(struct fold_rows *f, const int64_t *series, size_t n, struct err *err);
int fold_rows_chunks_ahead(struct fold_rows *f, const int64_t *chunks, size_t n, struct err *err);

int fold_rows_series(struct fold_rows *f, int64_t id, struct fold_series *ret, struct err *err);
int fold_rows_chunk(struct fold_rows *f, int64_t id, struct point_tail *to, struct err *err); /* appends its points */

/* The chunks from `number` on give way to what is put after this; s->chunks: those before, chunks: those afterwards. */
int fold_rows_replace(struct fold_rows *f, const struct fold_series *s, int64_t number, int64_t chunks,
		      struct err *err);
int fold_rows_put_chunk(struct fold_rows *f, int64_t id, const struct sum_point *p, unsigned n, struct err *err);
int fold_rows_put_series(struct fold_rows *f, const struct fold_series *s, struct err *err);

/* Writes what was put. */
int fold_rows_flush(struct fold_rows *f, struct err *err);

#endif
