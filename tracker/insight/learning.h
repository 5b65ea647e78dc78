/* learning.h: what the losses of a run say of its learning: a step whose loss stands out, and the step since which
 * validation rises while training falls. */
#ifndef DPT_INSIGHT_LEARNING_H
#define DPT_INSIGHT_LEARNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

/* ---- spikes, step by step ---- */

#define LEARNING_RECENT 50 /* steps that say what is usual */

/* Zeroed before the first step. */
struct learning_usual {
	double recent[LEARNING_RECENT];
	int64_t n;     /* steps so far */
	int64_t quiet; /* of n: until then no other spike is told */
	double most;   /* the largest loss before enough steps were there */
};

/* Takes the loss of the next step. True where it stands far above those of the last steps, whose median is *ret_usual;
 * the steps right behind a spike are never one. What is not finite is passed over. */
bool learning_spikes(struct learning_usual *u, double loss, double *ret_usual);

/* ---- overfitting, of a whole run ---- */

/*	rc = learning_new(&l, &err);
 *	…every validation: learning_validation(l, step, loss, &err)…, then
 *	…every step or epoch of training, in any order: learning_training(l, step, loss)…
 *	if (learning_overfits(l, &o)) learning_sentence(&text, &o);
 */
struct learning;

/* Pairs of series that programs write, by optimiser step or by epoch. */
struct learning_series {
	const char *validation, *training;
	bool by_epoch;
};

void learning_see(unsigned *seen, const char *key); /* of a run's series, all of them; *seen begins with 0 */
const struct learning_series *learning_pick(unsigned seen); /* NULL: nothing is validated */
const struct learning_series *learning_validates(const char *key); /* whose validation that is; NULL: of none */

#define LEARNING_VALIDATIONS_MAX 100000 /* later ones are passed over */

int learning_new(struct learning **ret, struct err *err); /* ERR_NOMEM */
void learning_free(struct learning *l);			  /* NULL is fine */

/* Steps of one restart may come again: the last value counts. What is not finite is passed over. ERR_NOMEM. */
int learning_validation(struct learning *l, int64_t step, double loss, struct err *err);

/* Counts for the first validation at its step or behind; those behind the last one count for none. */
void learning_training(struct learning *l, int64_t step, double loss);

struct learning_overfit {
	int64_t step, last;	     /* of the lowest validation loss; of the last one */
	double lowest, now;	     /* validation loss there; mean of the later half of what followed */
	double training, training_now; /* mean training loss up to that step; of that half */
};

/* Whether the validation loss has risen since its lowest by more than it scatters, over at least 3 validations, while
 * the training loss fell. */
bool learning_overfits(struct learning *l, struct learning_overfit *ret);

void learning_sentence(struct buf *out, const struct learning_overfit *o);

#endif
