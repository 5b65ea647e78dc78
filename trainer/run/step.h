/* step.h: one optimiser step of one rank, and where its time went. */
#ifndef DPT_RUN_STEP_H
#define DPT_RUN_STEP_H

#include "trainer/config/series.h"
#include "trainer/run/engine.h"

enum step_time {
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

enum series_id step_time_series(enum step_time t);

/* Whether steps of this run can take such time: bubbles are pipelines', copies what is offloaded. */
bool step_time_known(const struct engine *e, enum step_time t);

struct step_result {
	int64_t step;	  /* from 1 */
	int64_t epoch;	  /* from 1 */
	int64_t in_epoch; /* from 1 */
	int64_t count;	  /* samples (or tokens) that the loss is the mean of, of the global batch */
	double loss;	  /* mean over the global batch */
	double loss_sum;
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
	double seconds[TIME_COUNT];
	double load_s, load_cpu_s; /* of the loader's threads since the step before */
	int ready;		   /* batches that were there when the step began */
};

/* 1: a step was done; 0: no more data; negative: failed. */
int step_run(struct engine *e, struct step_result *ret, struct err *err);

/* Where another stage of a pipeline has the loss, this one's is nothing. */
int step_clear_loss(const struct engine *e, const struct program *p, struct err *err);

/* What ended this rank's part of a step of the epoch, counted from 1. */
const struct program *step_program(const struct engine *e, int64_t in_epoch);

#endif
