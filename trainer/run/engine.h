/* engine.h: everything that one rank of a run holds, and its life: opened until it can step, begun, closed. */
#ifndef DPT_RUN_ENGINE_H
#define DPT_RUN_ENGINE_H

#include "trainer/data/loader/loader.h"
#include "trainer/program/planning.h"
#include "trainer/program/workers.h"
#include "trainer/run/exec/exec.h"
#include "trainer/run/hooks.h"
#include "trainer/state/tensors.h"

/* What a process was started with; the ranks inherit it from the launcher. */
struct job {
	struct run_config *cfg; /* final once a subject is open (config.h) */
	struct batch_file *batch; /* of --batch-from, or NULL */
	const char *described; /* of a plan: the GPU that it is for, as rank.h has it; NULL */
	int argc;
	char *const *argv;
	char run_id[33]; /* in the launcher, once the ranks have ended: of the run that they recorded; "": of none */
};

struct cached_step;
struct nonfinite_watch;
struct step_queue;
struct watch;
struct loss_spike;

struct engine {
	const struct job *job;
	struct rank rank;
	struct workload subject;
	struct train_schedule course;
	struct prepared prepared;
	struct tensors tensors;
	struct exec *exec;
	struct loader *loader; /* of training; opened by engine_begin */
	struct loader *evaluation; /* of the evaluation set, at its end between two evaluations; NULL: not open */
	struct workers loading[SPLIT_COUNT]; /* --workers auto: of training, of evaluation */
	struct hooks hooks;
	struct trace *trace; /* of --trace-steps; NULL: none */
	struct nonfinite_watch *suspects; /* of a step that is made again; NULL: none is */
	struct watch *watch; /* of --watch-steps; NULL: nothing is watched */
	struct loss_spike *spike; /* … and no losses of samples are kept */
	struct cached_step *bare;   /* of dptrain doctor; NULL: no batch is kept */
	int64_t step;		 /* optimiser steps that were begun */
	struct step_queue *queue; /* … and have not ended (step.h) */
	double mark_s;		 /* when the last step ended */
	double until_s;		 /* when the run shall end; INFINITY: when its steps are done */
	int64_t resident_before; /* of memory_begin, less what the set drew for itself */
	bool stats_shared;	 /* running statistics are rank 0's on every rank */
};

/* Collective. Opens communicators, backend, data; prepares every program; loads --init-from. */
int engine_open(struct engine **ret, const struct job *job, const struct rank_context *seat, struct err *err);
void engine_close(struct engine *e); /* NULL is fine */

/* Opens a backend without data or ranks, with evaluation programs of the given sizes, and loads --init-from. */
struct engine_evaluation {
	const struct job *job;
	const struct rank_context *seat;
	struct workload subject; /* model and its sizes, no data */
	struct planning_sizes sizes;
};

int engine_open_evaluation(struct engine **ret, const struct engine_evaluation *o, struct err *err);

/* Opens only what a plan needs: no ranks, no tensor memory, no training data read but its shape. */
int engine_open_plan(struct engine **ret, const struct job *job, const struct rank_context *seat, struct err *err);

int engine_begin(struct engine *e, struct err *err); /* starts the loaders; the first step's clock */

/* A loader of the evaluation set, at its end, or (SPLIT_TRAIN) of training from e->step on. */
int engine_load(struct loader **ret, struct engine *e, enum split split, struct err *err);

bool engine_is_root(const struct engine *e);

#endif
