/* SPDX-License-Identifier: Apache-2.0 */
/* learning.h: analysis of a run's losses: spikes, and overfitting (validation loss rises while training loss falls).
 * Also the metric that runs are judged by. */
#ifndef DPT_INSIGHT_LEARNING_H
#define DPT_INSIGHT_LEARNING_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

/* ---- spikes, one step at a time ---- */

#define LEARNING_RECENT 50 /* steps that define the usual loss */

/* Zeroed before the first step. */
struct learning_usual {
	double recent[LEARNING_RECENT];
	int64_t n;     /* steps so far */
	int64_t quiet; /* no spike is reported before this n */
	double most;   /* the largest of the first losses */
};

/* Adds the loss of the next step. Returns true if it is far above the recent steps, whose median is *ret_usual. Steps
 * directly after a spike are never spikes. Ignores values that are not finite. A store, which sees the following points
 * too, looks for single points without a median for each (spike_find in web/store/points/series_summary.h). */
bool learning_spikes(struct learning_usual *u, double loss, double *ret_usual);

/* ---- overfitting of a whole run ---- */

/*	rc = learning_new(&l, &err);
 *	…every validation: learning_validation(l, step, loss, &err)…, then
 *	…every step or epoch of training, in any order: learning_training(l, step, loss)…
 *	if (learning_overfits(l, &o)) learning_sentence(&text, &o);
 */
struct learning;

/* Pairs of series that programs log, by optimizer step or by epoch. */
struct learning_series {
	const char *validation, *training;
	bool by_epoch;
};

void learning_see(unsigned *seen, const char *key);	    /* call it for all series of a run; *seen starts at 0 */
const struct learning_series *learning_pick(unsigned seen); /* NULL: no validation series */
const struct learning_series *learning_validates(const char *key); /* the pair of a validation series, or NULL */

#define LEARNING_VALIDATIONS_MAX 100000 /* later ones are ignored */

int learning_new(struct learning **ret, struct err *err); /* ERR_NOMEM */
void learning_free(struct learning *l);			  /* NULL is fine */

/* Adds a validation. Steps may repeat after a restart: the last value is kept. Ignores values that are not finite.
 * ERR_NOMEM. */
int learning_validation(struct learning *l, int64_t step, double loss, struct err *err);

/* Adds a training loss to the first validation at or after its step; ignored after the last validation. */
void learning_training(struct learning *l, int64_t step, double loss);

struct learning_overfit {
	int64_t step, last;	       /* step of the lowest validation loss; of the last one */
	double lowest, now;	       /* validation loss at that step; mean of the later half of the losses after it */
	double training, training_now; /* mean training loss up to that step; over that half */
};

/* Returns true if the validation loss has risen since its lowest by more than its noise, over at least 3 validations,
 * while the training loss fell. */
bool learning_overfits(struct learning *l, struct learning_overfit *ret);

void learning_sentence(struct buf *out, const struct learning_overfit *o);

#endif
