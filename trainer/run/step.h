/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: optimiser steps of one rank and their times. */
#ifndef DPT_RUN_STEP_H
#define DPT_RUN_STEP_H

#include "trainer/run/engine.h"

enum step_phase {
	TIME_STEP,
	TIME_DATA_WAIT,
	TIME_H2D,
	TIME_FORWARD,
	TIME_BACKWARD,
	TIME_COMM_EXPOSED,
	TIME_OPTIMIZER,
	TIME_BUBBLE,
	TIME_COPY_EXPOSED,
	TIME_OTHER,
	TIME_COMM_TOTAL,
	TIME_COUNT
};

enum series_id step_phase_series(enum step_phase t);

/* Returns true if steps of this run can have that time: bubbles only in pipelines, copies only with offloading. */
bool step_phase_known(const struct engine *e, enum step_phase t);

struct step_result {
	int64_t step;	  /* from 1 */
	int64_t epoch;	  /* from 1 */
	int64_t in_epoch; /* from 1 */
	int64_t count;	  /* samples (or tokens) of the global batch, over which the loss is averaged */
	double loss;	  /* mean over the global batch */
	double loss_sum;
	double own_sum; /* over this rank's samples; 0 on a stage without the loss */
	double lr, grad_norm;
	double loss_scale;  /* factor of the losses' gradients in this step */
	int64_t skipped;    /* skipped (non-finite) optimiser steps so far, including this one */
	int64_t in_a_row;   /* the skipped steps since the last good one */
	int64_t sent;	    /* bytes to other ranks */
	int64_t sent_nodes; /* the part sent to other machines */
	int workers;	    /* loader threads from now on */
	bool workers_found; /* --workers auto has settled with this step */
	bool epoch_ends;
	bool stop; /* the job was asked to end, or its time is over; all ranks see it at the same step */
	/* A rank was asked to end while it waited for data: the step changed nothing and is not counted. */
	bool blank;
	double seconds[TIME_COUNT];
	double load_s, load_cpu_s; /* time of the loader's threads since the previous step */
	int ready;		   /* batches that were ready when the step began */
};

/* A step is begun and, later, ended, in the same order. A device may work on one step while the next is enqueued;
 * results are then returned one step later. */
struct step_queue;
struct step_queue *step_queue_new(void);
void step_queue_free(struct step_queue *s);		      /* NULL is fine */

/* Continues after e->step: waits for steps in progress and drops them. The loss scale is read from the optimiser. */
int step_queue_restart(struct engine *e, struct err *err);

/* Returns 1: a step was begun; 0: none, since an end was requested while there was no data; negative: failed. */
int step_begin(struct engine *e, struct err *err);

/* Call it after each step_begin until it returns 0. 1: *ret is the next step's result; 0: no step must end now. all:
 * leaves no step in progress. Negative: failed. */
int step_end(struct engine *e, bool all, struct step_result *ret, struct err *err);

/* Begins and ends one step while no other is in progress; returns like step_begin. */
int step_run(struct engine *e, struct step_result *ret, struct err *err);

/* Returns the program that ended this rank's part of a step of the epoch, counted from 1. */
const struct program *step_program(const struct engine *e, int64_t in_epoch);

/* ---- steps on a cached batch, without data loading, evaluation or checkpoints ----
 *
 * `dptrain doctor` compares their times with those of normal steps: the difference beyond the waits themselves is the
 * cost of cold caches. */

#define CACHED_STEP_S 1.0 /* seconds that such steps run, about */

struct cached_step;
struct exec_call;
struct loader_batch;

struct cached_step *cached_step_new(void);
void cached_step_free(struct cached_step *b);			/* NULL is fine */

/* Called before a batch of the first step is passed to p: keeps its arguments. Ignores batches of other steps. */
void cached_step_keep(struct cached_step *b, const struct loader_batch *of, const struct program *p,
		      const struct exec_call *call);

/* Collective, while no step is in progress: runs such steps, which change parameters like others. *ret: mean seconds of
 * a step; NaN where no first step was kept. */
int cached_step_run(const struct engine *e, double *ret, struct err *err);

#endif
