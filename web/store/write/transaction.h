/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h: begins and ends the transactions of the writer's thread. While the database is away, a transaction
 * waits some seconds for it, then fails. When the answer of a commit is lost, its outcome is queried for as long.
 * Writer's thread only. */
#ifndef DPT_STORE_TRANSACTION_H
#define DPT_STORE_TRANSACTION_H

#include <stdatomic.h>

#include "web/store/db/db.h"

struct queue;
struct state;

struct transaction {
	struct db *db;
	struct state *state; /* drops what may not have been stored */
	struct queue *queue; /* when it ends, waits end */
	double began_s;	     /* 0: none; the first try of one that lost the database */
	double away_since_s; /* 0: the database is reachable */
	atomic_bool away;    /* the last try failed; any thread may read it */
};

/* Call transaction_finish after a failure, too. ERR_BUSY: the database stayed away. */
int transaction_begin(struct transaction *t, struct err *err);

/* Commits. Undoes everything when rc is an error or the commit fails. Returns rc or the code of the commit. */
int transaction_finish(struct transaction *t, int rc, struct err *err);

/* Tries once to reach a database that is away, so that its return is noticed without writers. Does
 * not shorten the wait of other writers. */
void transaction_look(struct transaction *t);

/* Returns what a burst of writes used to the system: free pages of the store's file beyond a reserve, and memory of the
 * process. */
struct trim {
	bool some; /* something was committed: there may be something to return */
	double trimmed_s;
};

void trim_trim(struct trim *s);			   /* returns memory, when the last time was long ago */
void trim_give_back(struct trim *s, struct db *d); /* in a pause; leaves `some` set while there is more */
void trim_shrink(struct db *d);			   /* at the end: all free pages, for at most a second */

/* --- the row of a lease (lease.h) --- */

#define LEASE_S 6 /* lifetime after a renewal */

/* Takes or renews a lease: 1 holder has it, 0 another process has it, negative: unknown. A store that one process
 * holds alone returns 1. */
int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err);

#endif
