/* lr_range.h: a learning-rate range test: the loss of steps whose rate rises, and the rate to train with (Smith 2017). */
#ifndef DPT_INSIGHT_LR_RANGE_H
#define DPT_INSIGHT_LR_RANGE_H

#include <stdbool.h>

#include "tracker/base/buf.h"

enum { LR_RANGE_STEPS_LEAST = 20, LR_RANGE_STEPS_MAX = 1000 };

/* Zeroed before the first step. */
struct lr_range_test {
	double lr[LR_RANGE_STEPS_MAX], loss[LR_RANGE_STEPS_MAX];
	int n;
	double mean, weight, best; /* of the last losses; the lowest such mean */
	double exploded;	   /* the rate at which it did; 0: it has not */
};

/* Takes the next step, the rate that it is made with and its loss before it; true: the loss has exploded (it is not
 * finite, or 4 times the lowest), and no further step is wanted. */
bool lr_range_add(struct lr_range_test *r, double lr, double loss);

struct lr_range_answer {
	double lr;	/* to train with: a tenth of `lowest` */
	double lowest;	/* the rate at which the smoothed loss was lowest */
	double steepest; /* … fell fastest, by the rate's logarithm */
	double first, least; /* the smoothed loss at the beginning; at `lowest` */
	double exploded; /* 0: it did not */
	bool open;	/* it was lowest at the end: higher rates may be better still */
};

/* False: no rate lowered the loss. */
bool lr_range_answer(const struct lr_range_test *r, struct lr_range_answer *ret);

void lr_range_sentence(struct buf *out, const struct lr_range_test *r);

#endif
