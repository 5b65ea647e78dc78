/* SPDX-License-Identifier: Apache-2.0 */
/* order.h: the order in which points of several series arrived, as bytes; kept for imported files. The successor of
 * a series is predicted to be the one it had last time, so series that alternate cost almost nothing.
 * Format: u8 format (1), 3 zero bytes, u32le crc32c of the rest; varint number of series, their ids as varints in
 * order of first appearance; varint number of points; then, repeated: varint number of correct predictions and,
 * unless all points are done, the place (varint) of the series that was not predicted. */
#ifndef DPT_STORE_ORDER_H
#define DPT_STORE_ORDER_H

#include "tracker/base/buf.h"

/* series: for each point the position of its series in ids; points whose id is 0 are left out. b must be empty and
 * without a maximum. */
void order_encode(struct buf *b, const int64_t *ids, size_t id_count, const uint32_t *series, size_t count);

struct series_order; /* reads what order_encode wrote */

int order_open(struct series_order **ret, const void *bytes, size_t len); /* copies bytes; 0 or ERR_CORRUPT */
int order_next(struct series_order *o, int64_t *ret_id); /* 1, 0 at the end, or ERR_CORRUPT */
void order_close(struct series_order *o);		 /* NULL is fine */

#endif
