/* loading.h: the loader of a run's samples: how many threads it has, where its batches lie. */
#ifndef DPT_PROGRAM_LOADING_H
#define DPT_PROGRAM_LOADING_H

#include "trainer/data/loader/loader.h"
#include "trainer/program/train_schedule.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

int loading_workers(const struct run_config *cfg); /* threads, at most */

struct loading_opts {
	const struct rank *rank;
	const struct workload *subject;
	const struct train_schedule *course;
	enum split split; /* of training: on and on from step; of evaluation: once through */
	bool resting;	  /* as loader_opts has it */
	int64_t step;	  /* optimiser steps that are done */
	int active;	  /* threads that work ahead at first, with --workers auto */
	void *memory;	  /* that was planned; NULL: none */
	double slow_s;	  /* a batch takes at least so long */
	void (*worked)(void *user, int thread, double from_s, double to_s); /* as loader_opts has it */
	void *worked_user;
	_Atomic uint64_t *raw_bytes; /* as loader_opts has it */
};

/* Of all batches that are in flight at once: what is planned for them. */
size_t loading_bytes(const struct loading_opts *o);
int loading_open(struct loader **ret, const struct loading_opts *o, struct err *err);

#endif
