/* writer.h: the one thread that owns the read-write connection. It commits what waits as one group, answers after the
 * commit, folds the log when there is time, checkpoints, and takes silent runs for killed. */
#ifndef DPT_STORE_WRITER_H
#define DPT_STORE_WRITER_H

#include "web/store/apply.h"
#include "web/store/store.h"

struct writer;

struct writer_job {
	struct apply_job a;
	struct ingest_done done;
	size_t bytes; /* of the memory that it holds while it waits */
	struct writer_job *next;
	/* Not NULL: no operation but a piece of work between commits; see writer_step. */
	int (*step)(void *arg, struct db *d, struct err *err);
	void *step_arg;
};

/* Opens (or makes) the file, then starts the thread. */
int writer_start(struct writer **ret, const struct store_opts *opts, struct err *err);
void writer_stop(struct writer *w); /* finishes what waits; NULL is fine */

/* Takes the job over: done is called, then it is freed. Waits while too much is queued. ERR_CANCELED when stopping. */
int writer_submit(struct writer *w, struct writer_job *job, struct err *err);

/* Runs fn on the writer's thread, outside transactions, in its turn, and waits. */
int writer_step(struct writer *w, int (*fn)(void *arg, struct db *d, struct err *err), void *arg, struct err *err);

void writer_fold_soon(struct writer *w); /* folds what is logged now without waiting for a quiet moment */
void writer_stats(struct writer *w, struct store_stats *ret);
int writer_watch(struct writer *w, void (*fn)(void *arg, uint64_t rev), void *arg);
void writer_unwatch(struct writer *w, int handle);
const char *writer_store_id(const struct writer *w);

#endif
