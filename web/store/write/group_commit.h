/* SPDX-License-Identifier: Apache-2.0 */
/* group_commit.h: commits groups of queued changes on the writer's thread. Private to the committer. */
#ifndef DPT_STORE_GROUP_COMMIT_H
#define DPT_STORE_GROUP_COMMIT_H

#include <pthread.h>
#include <stdatomic.h>

#include "web/store/store.h"
#include "web/store/write/transaction.h"

/* ---- folding.c ----
 * Decides when logged points are folded into series, and runs the transactions that fold. One process alone counts
 * what it logs and folds in quiet moments; with other writers a backlog decides. Writer's thread only, except
 * folding_ask. */

/* Decides when to fold a log that several processes write. A fold costs a row or two per series, so the
 * points of a run wait until there are many, until they are some minutes old, or until writing stops. Readers read
 * them from the log meanwhile. Writer's thread only. */
#define BACKLOG_AGE_S 300
#define BACKLOG_MARK_S 10 /* between marks */
#define BACKLOG_MARKS (BACKLOG_AGE_S / BACKLOG_MARK_S + 1)
#define BACKLOG_QUIET_S 2.0
#define BACKLOG_LOOK_S 1.0

struct backlog {
	int64_t oldest, newest;	   /* rows of the log at the last look; 0: none */
	double looked_s, newest_s; /* time of the last look; time when newest was first seen */
	struct {
		double at_s;
		int64_t row; /* newest row at that time */
	} marks[BACKLOG_MARKS];
	unsigned mark_count; /* in total */
};

#define FOLDING_BUSY_POINTS 400000 /* above this, fold even while operations wait */
#define FOLDING_POINTS 200000	   /* per transaction while idle */

struct folding {
	struct transaction *t;
	bool never;	       /* for tests */
	bool shared;	       /* with other writers */
	atomic_bool asked;     /* fold what is logged without waiting for a quiet moment */
	uint64_t rows, points; /* in the log; with other writers recounted from time to time */
	double counted_s, oldest_s, after_s;
	struct backlog backlog; /* shared with other writers */
};

void folding_ask(struct folding *f);  /* any thread */
void folding_done(struct folding *f); /* clears the request of folding_ask: nothing is due */

/* Counts what is logged, by all processes. */
int folding_count(struct folding *f, struct err *err);

/* What others log, from time to time: looks at it, or counts it. */
void folding_look(struct folding *f);
void folding_recount(struct folding *f);

/* What one commit added to the log and removed from it. */
struct folding_logged {
	uint64_t rows, points, rows_gone, points_gone;
};

void folding_note(struct folding *f, const struct folding_logged *l);

/* Returns true if folding is due now that nothing waits. quiet_s: time of the last commit. */
bool folding_due(const struct folding *f, double quiet_s, double now_s);

/* When it will be due if nothing arrives; INFINITY: never. */
double folding_due_at(const struct folding *f, double quiet_s, double now_s);

/* Returns true if folding is due although operations wait: the log and pending alerts must not grow without bound. */
bool folding_pressing(const struct folding *f, double now_s);

/* Returns true if points are logged that no other process would fold: with other writers they do, or the next process
 * that opens the store. */
bool folding_left(const struct folding *f);

/* Folds about max_points points in a transaction of its own. *ret_rev: revision of its last change; 0: nothing that
 * watchers need to see. */
int folding_some(struct folding *f, uint64_t max_points, uint64_t *ret_rev, struct err *err);

/* ---- group_commit.c ---- */

struct queue;
struct queue_job;
struct watchers;

struct group_commit {
	struct queue *queue;
	struct watchers *watchers;
	pthread_mutex_t restore_lock;				     /* guards the next two */
	int (*restore)(void *arg, const char *run, struct err *err); /* committer_on_archived */
	void *restore_arg;
	/* used by the writer's thread only */
	struct transaction tx;
	struct folding folding;
	struct trim spare;
	double last_commit_s;
	pthread_mutex_t lock; /* guards stats */
	struct store_stats stats;
};

/* Commits and answers a group; frees its jobs. */
void group_commit(struct group_commit *g, struct queue_job *jobs);

/* Updates the statistics after a transaction with rc and err, and calls the watchers. rev: revision of its last
 * change; 0: nothing that watchers need to see. jobs: changes in it. */
void group_commit_note(struct group_commit *g, int rc, const struct err *err, uint64_t rev, uint64_t jobs);

#endif
