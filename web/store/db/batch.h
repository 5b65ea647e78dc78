/* batch.h: the rows of one statement, sent together as one array per column, for remote databases (db_shared). The
 * statement reads them with unnest. */
#ifndef DPT_STORE_BATCH_H
#define DPT_STORE_BATCH_H

#include "tracker/base/buf.h"
#include "web/store/db/db.h"

struct db_batch {
	const char *fmt; /* of a row, letters as in db_run */
	struct buf columns[DB_VALUES_MAX];
	size_t rows;
};

void db_batch_init(struct db_batch *b, const char *fmt);
void db_batch_add(struct db_batch *b, ...); /* a row, values as in db_run; a failure is reported by db_batch_run */
void db_batch_drop(struct db_batch *b);     /* frees the rows */

/* Runs the query unless there are no rows, then frees the rows. */
int db_batch_run(struct db_batch *b, struct db *d, enum db_query q, struct err *err);

#endif
