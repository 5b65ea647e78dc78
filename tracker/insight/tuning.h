/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.h: recommends a learning rate, from the losses of a training with an increasing rate (Smith 2017) and of short
 * trainings with rates around its lowest loss, and a batch size, from the throughput at increasing sizes, the largest
 * that fits and the gradient noise scale (McCandlish 2018). */
#ifndef DPT_INSIGHT_TUNING_H
#define DPT_INSIGHT_TUNING_H

#include "tracker/base/buf.h"

/* ---- learning rate ---- */

enum { LR_RANGE_STEPS_LEAST = 20, LR_RANGE_STEPS_MAX = 1000 };

/* Zeroed before the first step. */
struct lr_range_test {
	double lr[LR_RANGE_STEPS_MAX], loss[LR_RANGE_STEPS_MAX];
	int n;
	double mean, weight, best; /* running mean of the losses; the lowest such mean */
	double exploded;	   /* the rate at which the loss exploded; 0: it has not */
};

/* Adds the next step: its rate and the loss before it. Returns true if the loss has exploded (not finite, or 4 times
 * the lowest): stop the test. */
bool lr_range_add(struct lr_range_test *r, double lr, double loss);

struct lr_range_answer {
	double lowest;	     /* the rate at which the smoothed loss was lowest */
	double steepest;     /* the rate of the fastest fall, over the rate's logarithm */
	double first, least; /* the smoothed loss at the beginning; at `lowest` */
	double exploded;     /* 0: the loss did not explode */
	bool open;	     /* the loss was lowest at the end: higher rates may be better */
};

/* Returns false if no rate lowered the loss. */
bool lr_range_answer(const struct lr_range_test *r, struct lr_range_answer *ret);

/* Appends the answer, or the reason why no rate can be recommended, as a part of a sentence. */
void lr_range_sentence(struct buf *out, const struct lr_range_test *r);

enum { LR_TRIALS_MAX = 24 };

/* Trainings of one length with a rate each: a multiple of the first one's by a power of two. */
struct lr_trials {
	double first;
	int power[LR_TRIALS_MAX];
	double loss[LR_TRIALS_MAX]; /* at the end; INFINITY: diverged */
	int n;
};

double lr_trials_rate(const struct lr_trials *t, int i);
int lr_trials_best(const struct lr_trials *t); /* index of the lowest loss; of equal ones, of the lowest rate */

/* Selects the power of the next training: four times or a quarter of the best rate, then two times or half of it.
 * Returns false when all of these were tried. */
bool lr_trials_next(const struct lr_trials *t, int *ret_power);

/* ---- batch size ---- */

enum { BATCH_SIZES_MAX = 24 };

/* Zeroed before the first size. */
struct batch_search {
	int64_t size[BATCH_SIZES_MAX]; /* samples per rank, increasing */
	double rate[BATCH_SIZES_MAX];  /* samples per second, of all ranks */
	int n;
	int ranks;
	int64_t largest; /* largest size that fits; 0: none */
	double noise;	 /* critical batch size: samples per step whose gradient is as much noise as signal; NaN:
			  * unknown */
};

/* Adds the next size. Returns true if neither this size nor the previous one raised the best rate: stop the search. */
bool batch_add(struct batch_search *s, int64_t size, double rate);

/* Returns the index of the smallest size within 3 % of the best rate, or -1 if none was measured. */
int batch_fastest(const struct batch_search *s);

/* Appends the recommendation as one sentence. */
void batch_sentence(struct buf *out, const struct batch_search *s);

#endif
