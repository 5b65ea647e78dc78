/* transaction.h: begins and ends the transactions of the writer's thread, one at a time, while the database comes and
 * goes: who finds it away waits for it, but nobody for longer than some seconds, and a commit whose answer was lost is
 * asked for until it is known. The writer's thread alone. */
#ifndef DPT_STORE_TRANSACTION_H
#define DPT_STORE_TRANSACTION_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct queue;
struct state;

struct transaction {
	struct db *db;
	struct state *state; /* forgets what may not have been stored */
	struct queue *queue; /* when it ends, nothing is waited for any longer */
	double away_since_s; /* 0: the database is there */
};

/* After a failure, too, transaction_finish is called. ERR_BUSY: the database stayed away. */
int transaction_begin(struct transaction *t, struct err *err);

/* Commits or, when rc says that something failed (or the commit does), undoes everything; rc, or the commit's code. */
int transaction_finish(struct transaction *t, int rc, struct err *err);

/* One try, where the database is away: nobody may be left who writes, and finds that it is back. True: it is back. Who
 * writes meanwhile still waits for it as long as others do. */
bool transaction_look(struct transaction *t);

#endif
