/* writer.h: the one thread that owns the read-write connection. It commits what waits as one group, answers after the
 * commit, folds the log when there is time, checkpoints, and takes silent runs for killed. */
#ifndef DPT_STORE_WRITER_H
#define DPT_STORE_WRITER_H

#include "web/store/store.h"
#include "web/store/write/queue.h"

struct watchers;
struct writer;

/* Opens (or makes) the file, then starts the thread. */
int writer_start(struct writer **ret, const struct store_opts *opts, struct err *err);
void writer_stop(struct writer *w); /* finishes what waits; NULL is fine */

/* What is put there is committed, then its done is called and it is freed. */
struct queue *writer_queue(struct writer *w);
struct watchers *writer_watchers(struct writer *w); /* told after each commit that changed something */

/* Runs fn on the writer's thread, outside transactions, in its turn, and waits. */
int writer_step(struct writer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg, struct err *err);

void writer_fold_soon(struct writer *w); /* folds what is logged now without waiting for a quiet moment */
void writer_stats(struct writer *w, struct store_stats *ret);
const char *writer_store_id(const struct writer *w);

#endif
