/* loading.h: the loader of a run's samples: its threads and the memory of its batches. */
#ifndef DPT_PROGRAM_LOADING_H
#define DPT_PROGRAM_LOADING_H

#include "trainer/data/loader/loader.h"
#include "trainer/program/train_schedule.h"
#include "trainer/program/rank.h"
#include "trainer/program/workload.h"

int loading_workers(const struct run_config *cfg); /* most threads */

struct loading_opts {
	const struct rank *rank;
	const struct workload *subject;
	const struct train_schedule *course;
	enum split split; /* training: endless from step; evaluation: one pass */
	bool resting;	  /* see loader_opts */
	int64_t step;	  /* finished optimiser steps */
	int active;	  /* threads that load ahead at first, with --workers auto */
	void *memory;	  /* planned memory; NULL: none */
	double slow_s;	  /* least seconds of a batch (test hook) */
	void (*worked)(void *user, int thread, double from_s, double to_s); /* see loader_opts */
	void *worked_user;
	_Atomic uint64_t *raw_bytes; /* see loader_opts */
};

/* Returns the bytes of all batches in flight, for the plan. */
size_t loading_bytes(const struct loading_opts *o);
int loading_open(struct loader **ret, const struct loading_opts *o, struct err *err);

#endif
