/* SPDX-License-Identifier: Apache-2.0 */
/* group_commit.h: commits groups of queued changes on the writer's thread. Private to the committer. */
#ifndef DPT_STORE_GROUP_COMMIT_H
#define DPT_STORE_GROUP_COMMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "web/store/store.h"
#include "web/store/write/folding.h"
#include "web/store/write/transaction.h"

struct queue;
struct queue_job;
struct watchers;

struct group_commit {
	struct queue *queue;
	struct watchers *watchers;
	pthread_mutex_t archived_lock; /* guards the next two */
	int (*archived)(void *arg, const char *run, struct err *err);
	void *archived_arg;
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
