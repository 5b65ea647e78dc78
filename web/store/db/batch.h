/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h: the rows of one statement, sent together as one array per column, for remote databases (db_shared). The
 * statement reads them with unnest. */
#ifndef DPT_STORE_BATCH_H
#define DPT_STORE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "web/store/db/db.h"

struct db_batch {
	const char *fmt; /* format of a row, letters as in db_run */
	struct buf columns[DB_VALUES_MAX];
	size_t rows;
};

void db_batch_init(struct db_batch *b, const char *fmt);
void db_batch_add(struct db_batch *b, ...); /* a row, values as in db_run; a failure is reported by db_batch_run */
void db_batch_drop(struct db_batch *b);     /* frees the rows */

/* Runs the query unless there are no rows, then frees the rows. */
int db_batch_run(struct db_batch *b, struct db *d, enum db_query q, struct err *err);

/* A set of values bound as one text (t): {"a","b"} or {1,2}, PostgreSQL's syntax of arrays. For queries
 * that look up many rows at once, which only remote databases (db_shared) need. */
void array_begin(struct buf *b); /* call buf_done afterwards */
void array_text(struct buf *b, const char *text);
void array_int(struct buf *b, int64_t v);
const char *array_end(struct buf *b); /* borrowed from b; NULL: out of memory */

/* begin, n numbers, end. */
const char *array_of(struct buf *b, const int64_t *v, size_t n);

#endif
