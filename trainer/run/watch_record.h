/* watch_record.h: statistics of tensors in watched steps, over all ranks: every --watch-steps steps, norms of gradients
 * and updates by parameter, dead rectifiers, histograms, and the noise scale. Does not change the training. */
#ifndef DPT_RUN_WATCH_RECORD_H
#define DPT_RUN_WATCH_RECORD_H

#include "tracker/dptrack.h"
#include "trainer/program/prepare.h"

struct watch;

/* Collective over all ranks. Borrows prepared and all; the programs must watch (optimizer_opts.watch). */
int watch_new(struct watch **ret, int64_t every, const struct prepared *prepared, struct comm *all, struct err *err);
void watch_free(struct watch *w); /* NULL is fine */

/* Returns true if that step, from 1, is watched. NULL: false. */
bool watch_due(const struct watch *w, int64_t step);

struct watch_step {
	const struct program *program; /* program of the last micro-batch */
	int64_t step;		       /* from 1 */
	int64_t samples;	       /* of the step, over all ranks */
	double grad_norm, loss_scale;
};

/* Called after each micro-batch, of that many samples, of a watched step; its grad_norm is not known yet. */
int watch_micro(struct watch *w, const struct watch_step *s, int64_t samples, struct err *err);

/* Collective, after a watched step: rank 0 records the statistics. */
int watch_record(struct watch *w, struct dptrack_run *run, const struct watch_step *s, struct err *err);

#endif
