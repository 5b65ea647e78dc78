/* step.h: one optimiser step of one rank, and where its time went. */
#ifndef DPT_RUN_STEP_H
#define DPT_RUN_STEP_H

#include "trainer/config/train_series.h"
#include "trainer/run/engine.h"

enum step_timing {
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

enum series_id step_time_series(enum step_timing t);

/* Whether steps of this run can take such time: bubbles are pipelines', copies what is offloaded. */
bool step_time_known(const struct engine *e, enum step_timing t);

struct step_result {
	int64_t step;	  /* from 1 */
	int64_t epoch;	  /* from 1 */
	int64_t in_epoch; /* from 1 */
	int64_t count;	  /* samples (or tokens) that the loss is the mean of, of the global batch */
	double loss;	  /* mean over the global batch */
	double loss_sum;
	double own_sum;	  /* of this rank's samples; of a pipeline's stage without the loss 0 */
	double lr, grad_norm;
	double loss_scale;  /* by which the losses' gradients were multiplied in this step */
	int64_t skipped;    /* optimiser steps so far, this one included, that changed nothing: not finite */
	int64_t in_a_row;   /* of these, those since the last good one */
	int64_t sent;	    /* bytes to other ranks */
	int64_t sent_nodes; /* of them to other machines */
	int workers;	    /* loader threads from now on */
	bool workers_found;  /* … as --workers auto has settled with this step */
	bool epoch_ends;
	bool stop; /* somebody asked the job to end, or its time is over; all ranks see it at the same step */
	/* A rank was asked to end while it waited for data: the step changed nothing and counts nowhere. */
	bool blank;
	double seconds[TIME_COUNT];
	double load_s, load_cpu_s; /* of the loader's threads since the step before */
	int ready;		   /* batches that were there when the step began */
};

/* A step is begun and, later, ended, in the same order. A device may work on one while the next is begun behind it:
 * its results come one step late, and are its own. */
struct step_queue;
int step_queue_new(struct step_queue **ret, struct err *err); /* ERR_NOMEM */
void step_queue_free(struct step_queue *s);		    /* NULL is fine */

/* From now on steps begin behind e->step; what is under way is waited for and forgotten. The loss scale is the
 * optimiser's. */
int step_queue_restart(struct engine *e, struct err *err);

/* 1: a step was begun; 0: none, as somebody asked for the end while there was no data; negative: failed. */
int step_begin(struct engine *e, struct err *err);

/* Called after each step_begin until it returns 0. 1: *ret is the next step's; 0: none is over that must be. all: none
 * is left under way. Negative: failed. */
int step_end(struct engine *e, bool all, struct step_result *ret, struct err *err);

/* One step from its beginning to its end, where none is under way; returns what step_begin does. */
int step_run(struct engine *e, struct step_result *ret, struct err *err);

/* What ended this rank's part of a step of the epoch, counted from 1. */
const struct program *step_program(const struct engine *e, int64_t in_epoch);

#endif
