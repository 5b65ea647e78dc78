/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h: begins and ends the transactions of the writer's thread, and of its cache of rows. Writer's thread
 * only. */
#ifndef DPT_STORE_TRANSACTION_H
#define DPT_STORE_TRANSACTION_H

#include "web/store/db/db.h"

struct state;

struct transaction {
	struct db *db;
	struct state *state; /* drops what may not have been stored */
};

/* Call transaction_finish after a failure, too. ERR_BUSY: the database stayed away (db_begin). */
int transaction_begin(struct transaction *t, struct err *err);

/* Commits. Undoes everything when rc is an error or the commit fails. Returns rc or the code of the commit. */
int transaction_finish(struct transaction *t, int rc, struct err *err);

/* Returns what a burst of writes used to the system: free pages of the store's file beyond a reserve, and memory of the
 * process. */
struct trim {
	bool some; /* something was committed: there may be something to return */
	double trimmed_s;
};

void trim_trim(struct trim *s);			   /* returns memory, when the last time was long ago */
void trim_give_back(struct trim *s, struct db *d); /* in a pause; leaves `some` set while there is more */
void trim_shrink(struct db *d);			   /* at the end: all free pages, for at most a second */

#define LEASE_S 6 /* lifetime of a lease (lease.h) after a renewal */

/* Takes or renews the row of a lease: 1 holder has it, 0 another process has it, negative: unknown. */
int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err);

#endif
