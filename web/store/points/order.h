/* order.h: in which order the points of several series came, as bytes: an imported file's is kept across its tags. What
 * follows a series is guessed to be what followed it the last time, so that series which take turns cost next to
 * nothing.
 *
 * Bytes: u8 format (1), 3 zero bytes, u32le crc32c of all that follows; varint number of series, their ids as varints
 * in order of first appearance; varint number of points; then, again and again: varint number of right guesses, and
 * unless all points are there the place (varint) of the series that was not guessed. */
#ifndef DPT_STORE_ORDER_H
#define DPT_STORE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"

/* The series of each point by their place in ids; places whose id is 0 are left out. b must be empty. 0 or
 * ERR_NOMEM. */
int order_encode(struct buf *b, const int64_t *ids, size_t id_count, const uint32_t *series, size_t count);

struct order; /* walks what order_encode wrote */

int order_open(struct order **ret, const void *bytes, size_t len); /* copies bytes; 0, ERR_NOMEM or ERR_CORRUPT */
int order_next(struct order *o, int64_t *ret_id);                  /* 1, 0 at the end, or ERR_CORRUPT */
void order_close(struct order *o);                                 /* NULL is fine */

#endif
