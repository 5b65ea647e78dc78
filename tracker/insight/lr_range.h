/* lr_range.h: a learning-rate range test: trains with an increasing rate and recommends a rate from the losses (Smith
 * 2017). */
#ifndef DPT_INSIGHT_LR_RANGE_H
#define DPT_INSIGHT_LR_RANGE_H

#include <stdbool.h>

#include "tracker/base/buf.h"

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
	double lr;	/* recommended: a tenth of `lowest` */
	double lowest;	/* the rate at which the smoothed loss was lowest */
	double steepest; /* the rate of the fastest fall, over the rate's logarithm */
	double first, least; /* the smoothed loss at the beginning; at `lowest` */
	double exploded; /* 0: the loss did not explode */
	bool open;	/* the loss was lowest at the end: higher rates may be better */
};

/* Returns false if no rate lowered the loss. */
bool lr_range_answer(const struct lr_range_test *r, struct lr_range_answer *ret);

/* Appends the recommendation as one sentence. */
void lr_range_sentence(struct buf *out, const struct lr_range_test *r);

#endif
