/* loss_spike.h: detects a step whose loss is far above those before it, and its samples with the largest losses. Keeps
 * those of every step, because a spike is detected when the step has changed the weights and cannot be repeated. */
#ifndef DPT_RUN_LOSS_SPIKE_H
#define DPT_RUN_LOSS_SPIKE_H

#include "tracker/dptrack.h"
#include "trainer/program/prepare.h"
#include "trainer/run/step.h"

struct loss_spike;

int loss_spike_new(struct loss_spike **ret, struct err *err); /* ERR_NOMEM */
void loss_spike_free(struct loss_spike *s);		    /* NULL is fine */

/* Records the losses of the rows of one program of a step (as in struct exec_done; NULL: none). It has `samples`
 * samples that begin at a position in the epoch's order; `begins`: the step's first program. s NULL: off. */
struct loss_spike_micro {
	const struct program *program;
	const double *losses;
	int64_t step, position, samples;
	bool begins;
};

void loss_spike_micro(struct loss_spike *s, const struct loss_spike_micro *m);

/* Collective, after each step, when a part of the next one may have been recorded: after a spike rank 0 warns and
 * records an alert that names the samples of largest loss over all ranks. */
int loss_spike_check(struct engine *e, struct dptrack_run *run, const struct step_result *r, struct err *err);

#endif
