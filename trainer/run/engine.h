/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: the state of one rank of a run and its life: opened until it can step, begun, closed. */
#ifndef DPT_RUN_ENGINE_H
#define DPT_RUN_ENGINE_H

#include "tracker/base/clock.h"
#include "trainer/program/loading.h"
#include "trainer/program/planning.h"
#include "trainer/run/exec/exec.h"
#include "trainer/state/tensors.h"

/* The arguments of the process; the ranks inherit it from the launcher. */
struct job {
	struct run_config *cfg;	  /* final once the workload is open (config.h) */
	struct batch_file *batch; /* batch of --batch-from; NULL: none */
	const char *described;	  /* GPU of a plan, see rank.h; NULL: the local one */
	int argc;
	char *const *argv;
	double planned_step_s; /* step time in the plan of --auto; 0: not planned */
	char run_id[33]; /* in the launcher, after the ranks have ended: id of the run that they recorded; "": none */
};

struct cached_step;
struct nonfinite_watch;
struct step_queue;
struct watch;
struct loss_spike;

struct engine {
	const struct job *job;
	struct rank rank;
	struct shared_cache *shared_cache; /* NULL: none */
	struct workload workload;
	struct train_schedule train_schedule;
	struct prepared prepared;
	struct tensors tensors;
	struct exec *exec;
	struct loader *loader;	   /* loader for training; opened by engine_begin */
	struct loader *evaluation; /* reads the evaluation set; at its end between two evaluations; NULL: not open */
	struct workers loading[SPLIT_COUNT]; /* --workers auto: of training, of evaluation */
	struct trace *trace;		  /* trace of --trace-steps; NULL: none */
	struct nonfinite_watch *suspects; /* watches a repeated step; NULL: none */
	struct watch *watch;		  /* watch of --watch-steps; NULL: off */
	struct loss_spike *spike;	  /* detects loss spikes; NULL: off */
	struct cached_step *cached;	  /* used by dptrain doctor; NULL: off */
	int64_t step;			  /* optimiser steps begun */
	struct step_queue *queue;	  /* steps in progress (step.h) */
	double mark_s;			  /* when the last step ended */
	double until_s;			  /* when the run must end; INFINITY: after its steps */
	int64_t resident_before;	  /* resident memory at memory_begin, less that of the data set */
	int64_t in_vain;		  /* skipped steps in a row that a lower loss scale cannot repair */
	bool stats_shared;		  /* running statistics are rank 0's on every rank */
};

/* Collective. Opens communicators, backend and data; prepares every program; loads --init-from. */
int engine_open(struct engine **ret, const struct job *job, const struct rank_context *context, struct err *err);
void engine_close(struct engine *e); /* NULL is fine */

/* Opens a backend without data or other ranks, with evaluation programs of the given sizes, and loads --init-from. */
struct engine_evaluation {
	const struct job *job;
	const struct rank_context *context;
	struct workload workload; /* model and its sizes, no data */
	struct planning_sizes sizes;
};

int engine_open_evaluation(struct engine **ret, const struct engine_evaluation *o, struct err *err);

/* Opens only what a plan needs: no other ranks, no tensor memory, no training data except its shape. */
int engine_open_plan(struct engine **ret, const struct job *job, const struct rank_context *context, struct err *err);

int engine_begin(struct engine *e, struct err *err); /* starts the loaders and the clock of the first step */

/* Opens a loader of the evaluation set, at its end, or (SPLIT_TRAIN) of training from e->step on. */
int engine_load(struct loader **ret, struct engine *e, enum split split, struct err *err);

bool engine_is_root(const struct engine *e);

/* train.c: `dptrain train` in a rank's process. Returns the exit code; stores a failure in the shared status. */
int train_main(const struct job *job, struct rank_context *context);

#endif
