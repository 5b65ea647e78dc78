/* log_row.h: one row of the ingest log: the points of one batch for one run, grouped by series, as bytes with a checksum.
 *
 * Bytes: u8 format (1), 3 zero bytes, u32le crc32c of all that follows; per series: varint series id, varint points,
 * then per point: zigzag varint difference to the step before (of the first: to 0), f64 wall time, f64 value. */
#ifndef DPT_STORE_LOG_ROW_H
#define DPT_STORE_LOG_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "web/store/points/series_summary.h"

void pack_begin(struct buf *b); /* b must be empty */
void pack_series(struct buf *b, int64_t series_id, const struct sum_point *points, size_t n);
void pack_end(struct buf *b);

/* Walks a row. Caller's storage; bytes must outlive it. */
struct pack_reader {
	const unsigned char *at, *end;
	uint64_t left; /* points of the series not read yet */
	int64_t step;
};

int pack_open(struct pack_reader *ret, const void *bytes, size_t len); /* 0 or ERR_CORRUPT */

/* Goes to the next series (what is left of the present one is skipped): 1, 0 at the end, or ERR_CORRUPT. */
int pack_next_series(struct pack_reader *r, int64_t *ret_series_id, uint64_t *ret_points);

/* The next point of the series: 1, 0 when there is none, or ERR_CORRUPT. */
int pack_next_point(struct pack_reader *r, struct sum_point *ret);

#endif
