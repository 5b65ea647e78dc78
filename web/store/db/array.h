/* array.h: a set of values bound as one text (t): {"a","b"} or {1,2}, PostgreSQL's syntax of arrays. For queries
 * that look up many rows at once, which only remote databases (db_shared) need. */
#ifndef DPT_STORE_ARRAY_H
#define DPT_STORE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"

void array_begin(struct buf *b); /* call buf_done afterwards */
void array_text(struct buf *b, const char *text);
void array_int(struct buf *b, int64_t v);
const char *array_end(struct buf *b); /* borrowed from b; NULL: out of memory */

/* begin, n numbers, end. */
const char *array_of(struct buf *b, const int64_t *v, size_t n);

#endif
