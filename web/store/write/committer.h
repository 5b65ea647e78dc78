/* committer.h: the one thread that owns the read-write connection. It commits what waits as one group, answers after
 * the commit, folds the log when there is time, checkpoints, and takes silent runs for killed. */
#ifndef DPT_STORE_COMMITTER_H
#define DPT_STORE_COMMITTER_H

#include "web/store/store.h"

struct db;
struct queue;
struct committer;

/* Opens (or makes) the file, then starts the thread. */
int committer_start(struct committer **ret, const struct store_opts *opts, struct err *err);
void committer_stop(struct committer *w); /* finishes what waits; NULL is fine */

/* The end is near: nothing more is taken, and what waits for a database that is away is failed soon. */
void committer_hurry(struct committer *w); /* NULL is fine */

/* What is put there is committed, then its done is called and it is freed. */
struct queue *committer_queue(struct committer *w); /* NULL of NULL, a store that is only read */

/* What store_watch and store_unwatch promise. */
int committer_watch(struct committer *w, void (*fn)(void *arg, uint64_t rev), void *arg);
void committer_tell(struct committer *w, uint64_t rev); /* watchers: another process has committed it */
void committer_unwatch(struct committer *w, int handle);

/* Runs fn on the writer's thread, outside transactions, in its turn, and waits. */
int committer_step(struct committer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg,
		   struct err *err);

/* fn runs on the writer's thread when points come for a run whose own lie in an archive: it sees to it that they become
 * rows again, and calls committer_has_points then, or when that has failed; it must only signal. Or it says that this
 * cannot be had now. NULL: nobody does that any more; what ran has returned. */
void committer_on_archived(struct committer *w, int (*fn)(void *arg, const char *run, struct err *err), void *arg);
void committer_has_points(struct committer *w, const char *run); /* what waits for them is tried again */

void committer_fold_soon(struct committer *w); /* folds what is logged now without waiting for a quiet moment */
void committer_stats(struct committer *w, struct store_stats *ret);
const char *committer_holder(const struct committer *w); /* what leases call this process */
const char *committer_store_id(const struct committer *w);

#endif
