/* array.h: a set of values as one that is bound (t): {"a","b"} or {1,2}, as PostgreSQL writes arrays. For queries that
 * look up many rows at once, which only a database elsewhere needs (db_shared). */
#ifndef DPT_STORE_ARRAY_H
#define DPT_STORE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"

void array_begin(struct buf *b); /* the caller's, for buf_done */
void array_text(struct buf *b, const char *text);
void array_int(struct buf *b, int64_t v);
const char *array_end(struct buf *b); /* borrowed from b; NULL: out of memory */

/* All three: n numbers. */
const char *array_of(struct buf *b, const int64_t *v, size_t n);

#endif
