/* SPDX-License-Identifier: Apache-2.0 */
/* loading.h: the loader of a run's samples: the memory of its batches and the number of its threads. */
#ifndef DPT_PROGRAM_LOADING_H
#define DPT_PROGRAM_LOADING_H

#include "trainer/data/loader/loader.h"
#include "trainer/data/store/peers.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

int loading_workers(const struct run_config *cfg); /* most threads */

struct loading_opts {
	const struct rank *rank;
	const struct workload *workload;
	const struct train_schedule *train_schedule;
	enum split split; /* training: endless from step; evaluation: one pass */
	bool resting;	  /* see loader_opts */
	int64_t step;	  /* finished optimiser steps */
	int active;	  /* threads that load ahead at first, with --workers auto */
	void *memory;	  /* planned memory; NULL: none */
	void (*worked)(void *user, int thread, double from_s, double to_s); /* see loader_opts */
	void *worked_user;
	_Atomic uint64_t *raw_bytes; /* see loader_opts */
};

/* Returns the bytes of all batches in flight, for the plan. */
size_t loading_bytes(const struct loading_opts *o);
int loading_open(struct loader **ret, const struct loading_opts *o, struct err *err);

/* Finds the number of loader threads (--workers auto): measures while the run continues, then keeps the best. Pure
 * logic over the times of batches: knows neither loader nor clock.
 *
 * Threads that load ahead take time from those that compute, where both share cores. Without them, all threads load a
 * batch when it is needed. So the search begins with none, adds threads as long as batches are late and steps become
 * faster, and takes back what did not help. */
#define WORKERS_SKIPPED 4 /* batches after a change that still show the former number */
#define WORKERS_WINDOW 8  /* batches that measure one number */

struct workers {
	int n, most;	   /* threads now, and at most */
	bool done;	   /* n is final */
	double wait_share; /* share of time spent waiting for data, with the best number so far */
	/* internal */
	int seen;
	double wait_s, all_s, longest_s;
	int best, in_vain; /* numbers tried since then without gain */
	bool any;
	double best_s; /* seconds of a batch with that many */
};

void workers_init(struct workers *s, int most); /* most >= 1 */

/* Records a batch that took all_s since the one before, wait_s of it waiting for data. Returns true when n has changed
 * or is final. */
bool workers_batch(struct workers *s, double wait_s, double all_s);

/* ---- shared_cache.c ----
 * The nodes of a job share their caches (--cache-shared): the ranks tell each other where each node's cache is served.
 * Knows neither sets nor blocks. */

struct shared_cache;

/* Collective over all ranks, after rank_meet and before the set is opened. Each node's first rank serves its cache.
 * *ret is NULL without the flag, or with one machine. r must outlive the call only. */
int shared_cache_open(struct shared_cache **ret, const struct rank *r, struct err *err);
void shared_cache_close(struct shared_cache *s); /* after the set; NULL is fine */

struct peers *shared_cache_peers(const struct shared_cache *s); /* for struct dataset_opts; s NULL: NULL */

#endif
