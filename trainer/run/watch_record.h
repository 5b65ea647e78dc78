/* watch_record.h: what the watched steps of a run tell of its tensors, over all ranks: every --watch-steps steps, norms of
 * gradients and updates by parameter, rectifiers that are dead, histograms, and the noise scale. Changes no number of
 * the training. */
#ifndef DPT_RUN_WATCH_RECORD_H
#define DPT_RUN_WATCH_RECORD_H

#include "tracker/dptrack.h"
#include "trainer/program/prepare.h"

struct watch;

/* Collective over all ranks. prepared and all are borrowed; its programs watch (optimizer_opts.watch). */
int watch_new(struct watch **ret, int64_t every, const struct prepared *prepared, struct comm *all, struct err *err);
void watch_free(struct watch *w); /* NULL is fine */

/* Whether that step, from 1, is watched. NULL: none is. */
bool watch_due(const struct watch *w, int64_t step);

struct watch_step {
	const struct program *program; /* that was run, of the last micro-batch */
	int64_t step;		       /* from 1 */
	int64_t samples;	       /* of the step, over all ranks */
	double grad_norm, loss_scale;
};

/* Behind each micro-batch, of so many samples, of a watched step; its grad_norm is not known yet. */
int watch_micro(struct watch *w, const struct watch_step *s, int64_t samples, struct err *err);

/* Collective, behind a watched step: rank 0 records what is found. */
int watch_record(struct watch *w, struct dptrack_run *run, const struct watch_step *s, struct err *err);

#endif
