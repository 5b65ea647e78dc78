/* loss_spike.h: a step whose loss stands far above those before it, and which of its samples had the largest losses. Keeps
 * those of every step, as the step that proves to be one cannot be made again: it has changed the weights. */
#ifndef DPT_RUN_LOSS_SPIKE_H
#define DPT_RUN_LOSS_SPIKE_H

#include "tracker/dptrack.h"
#include "trainer/program/prepare.h"
#include "trainer/run/step.h"

struct loss_spike;

int loss_spike_new(struct loss_spike **ret, struct err *err); /* ERR_NOMEM */
void loss_spike_free(struct loss_spike *s);		    /* NULL is fine */

/* A program of a step, of `samples` samples that begin at a position of the epoch's order, has left the losses of its
 * rows (as struct exec_done has them; NULL: none); `begins`: the step's first. s NULL: nothing is watched. */
struct loss_spike_micro {
	const struct program *program;
	const double *losses;
	int64_t step, position, samples;
	bool begins;
};

void loss_spike_micro(struct loss_spike *s, const struct loss_spike_micro *m);

/* Collective, behind each step, when a part of the one behind it may have been looked at: where it was a spike, rank 0
 * records an alert that names the samples of largest loss over all ranks, and warns. */
int loss_spike_check(struct engine *e, struct dptrack_run *run, const struct step_result *r, struct err *err);

#endif
