/* log_row.h: one row of the ingest log: the points of one batch for one run, grouped by series, with a checksum.
 * Format: u8 format (1), 3 zero bytes, u32le crc32c of the rest; per series: varint series id, varint points, then
 * per point: zigzag varint of step minus previous step (0 at first), f64 wall time, f64 value. */
#ifndef DPT_STORE_LOG_ROW_H
#define DPT_STORE_LOG_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "web/store/points/series_summary.h"

void pack_begin(struct buf *b); /* b must be empty */
void pack_series(struct buf *b, int64_t series_id, const struct sum_point *points, size_t n);
void pack_end(struct buf *b);

/* Reads a row. Caller's storage; the bytes must outlive it. */
struct pack_reader {
	const unsigned char *at, *end;
	uint64_t left; /* unread points of the current series */
	int64_t step;
};

int pack_open(struct pack_reader *ret, const void *bytes, size_t len); /* 0 or ERR_CORRUPT */

/* Moves to the next series (skips the rest of the current one): 1, 0 at the end, or ERR_CORRUPT. */
int pack_next_series(struct pack_reader *r, int64_t *ret_series_id, uint64_t *ret_points);

/* Reads the next point of the series: 1, 0 at its end, or ERR_CORRUPT. */
int pack_next_point(struct pack_reader *r, struct sum_point *ret);

#endif
