/* SPDX-License-Identifier: Apache-2.0 */
/* committer.h: the thread that owns the read-write connection. It commits what is queued as one group and answers
 * after the commit. In between it folds the log, checkpoints and marks silent runs as killed. */
#ifndef DPT_STORE_COMMITTER_H
#define DPT_STORE_COMMITTER_H

#include <pthread.h>

#include "web/store/store.h"
#include "web/store/write/ingest.h"

struct db;
struct queue;
struct committer;

/* Opens the database, or creates the file, then starts the thread. */
int committer_start(struct committer **ret, const struct store_opts *opts, struct err *err);
void committer_stop(struct committer *w); /* finishes what is queued; NULL is fine */

/* Announces the end: refuses new operations, and soon fails those that wait for a database that is away. */
void committer_hurry(struct committer *w); /* NULL is fine */

/* The queue whose operations are committed; after done is called the job is freed. */
struct queue *committer_queue(struct committer *w); /* NULL for NULL, a store that is only read */

/* As store_watch and store_unwatch. */
int committer_watch(struct committer *w, void (*fn)(void *arg, uint64_t rev), void *arg);
void committer_tell(struct committer *w, uint64_t rev); /* calls the watchers: another process committed rev */
void committer_unwatch(struct committer *w, int handle);

/* Runs fn on the writer's thread in queue order, outside a transaction, and waits for it. */
int committer_step(struct committer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg,
		   struct err *err);

/* fn runs on the writer's thread when points arrive for a run whose points are in an archive. It holds the run's
 * operations, and signals a thread that restores the points and then calls committer_has_points, also when it fails. It
 * returns an error when a restore is impossible now. NULL: removes fn; no call is running afterwards. */
void committer_on_archived(struct committer *w, int (*fn)(void *arg, const char *run, struct err *err), void *arg);
bool committer_hold(struct committer *w, const char *run); /* false: too many runs are held, or the store is closing */
void committer_has_points(struct committer *w, const char *run); /* applies the operations that were held for them */

void committer_mark_stale(struct committer *w); /* does the periodic work now: marks silent runs as killed */
void committer_fold_soon(struct committer *w); /* folds the log now, without waiting for a quiet moment */
void committer_stats(struct committer *w, struct store_stats *ret);
const char *committer_holder(const struct committer *w); /* this process's name in leases */
const char *committer_store_id(const struct committer *w);

/* ---- waiter.c ----
 * Waiting for the writer's thread: one answer in the caller's storage, and callbacks for committed changes (the list of
 * store_watch). Private to web/store. */

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
	struct ingest_result res;
};

/* Calling the fn of the result ends the wait. */
struct ingest_done waiter_init(struct waiter *w);

/* Returns the code of the answer and copies its error to err; ret (NULL is fine) gets all of it. */
int waiter_wait(struct waiter *w, struct ingest_result *ret, struct err *err);

void waiter_done(struct waiter *w);

/* The callbacks. */
struct watchers;

struct watchers *watchers_new(void);
void watchers_free(struct watchers *w); /* NULL is fine */

int watchers_add(struct watchers *w, void (*fn)(void *arg, uint64_t rev), void *arg); /* a handle, or ERR_LIMIT */
void watchers_remove(struct watchers *w, int handle); /* when it returns, fn is not running and is not called again */

void watchers_tell(struct watchers *w, uint64_t rev);

#endif
