/* batch.h: the rows of one statement, sent together as an array a column, for a database elsewhere (db_shared): its
 * statement reads them by unnest. */
#ifndef DPT_STORE_BATCH_H
#define DPT_STORE_BATCH_H

#include "tracker/base/buf.h"
#include "web/store/db/db.h"

struct db_batch {
	const char *fmt; /* of a row, in the letters of db_run */
	struct buf columns[DB_VALUES_MAX];
	size_t rows;
};

void db_batch_init(struct db_batch *b, const char *fmt);
void db_batch_add(struct db_batch *b, ...); /* a row, as db_run's values; a failure shows when it runs */
void db_batch_drop(struct db_batch *b);     /* its rows, and their memory */

/* Runs the query, unless there are no rows, and drops them. */
int db_batch_run(struct db_batch *b, struct db *d, enum db_query q, struct err *err);

#endif
