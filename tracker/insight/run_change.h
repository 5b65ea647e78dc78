/* SPDX-License-Identifier: Apache-2.0 */
/* run_change.h: how much faster one side is than another, with intervals, and in which phases. A side is one run or
 * several equal ones (the same params except seed and name).
 *
 * With several runs on both sides the run is the unit: Welch's t on the logarithms of their seconds per sample. If a
 * side has only one run, the spread of equal runs comes from the other side and from other groups of equal runs (the
 * pool). Without any such group there is no interval, because the spread of equal runs is unknown. The same
 * holds with fewer than RUN_CHANGE_EFFECTIVE_LEAST effective steps on a side. */
#ifndef DPT_INSIGHT_RUN_CHANGE_H
#define DPT_INSIGHT_RUN_CHANGE_H

#include "tracker/base/buf.h"
#include "tracker/insight/step_time.h"

#define RUN_CHANGE_CONFIDENCE 0.95
#define RUN_CHANGE_EFFECTIVE_LEAST 10

struct run_change_side {
	const struct step_time *runs;
	size_t n;
};

/* Spread of equal runs, added group by group. Zeroed: empty. */
struct run_change_pool {
	double log_squares;		  /* squared deviations of log(seconds) from the group's mean */
	double within;			  /* sum of the runs' own variances, over runs */
	double squares[STEP_TIME_PHASES]; /* of phase / mean seconds of the group */
	double df;			  /* runs minus groups */
	size_t runs;
};

void run_change_pool_add(struct run_change_pool *pool, struct run_change_side group);

enum run_change_basis {
	RUN_CHANGE_REPEATS, /* repeats on both sides */
	RUN_CHANGE_POOLED,  /* one side has a single run: spread of other repeats */
	RUN_CHANGE_ALONE,   /* one run per side, and the spread of equal runs is unknown: no interval */
	RUN_CHANGE_TOO_FEW, /* too few effective steps: no interval */
};

struct run_change_part {
	double seconds;	  /* per sample: B's minus A's */
	double low, high; /* NaN: no interval */
};

struct run_change {
	enum run_change_basis basis;
	bool by_step;		      /* a step counted as a sample: the batch size is unknown; set by the caller */
	bool by_clock[2];	      /* A and B have no phase/step; set by the caller */
	double seconds[2];	      /* per sample, A and B: geometric means of the runs */
	double factor, low, high;     /* A's seconds / B's: above 1, B is faster; low and high NaN: no interval */
	double steps_low, steps_high; /* interval from the steps of these runs alone; NaN: too few */
	struct run_change_part whole;
	struct run_change_part phase[STEP_TIME_PHASES]; /* their seconds sum to the whole's */
};

/* Returns half the width of the 95 % interval of the difference of two means (Welch); NaN with fewer than two values a
 * side. */
double run_change_half_width(const double *a, size_t n_a, const double *b, size_t n_b);

/* Compares a with b. Each side has at least one run, each with steps. pool: other groups than the two sides. */
void run_change_compute(struct run_change_side a, struct run_change_side b, const struct run_change_pool *pool,
			struct run_change *ret);

/* Appends the finding as one sentence, the same on the terminal, in REST and on the page: "B is 1.31x faster than A
 * (1.27-1.35), all of it in data_wait". Uses "faster" or "slower" only if the interval confirms it. */
void run_change_describe(struct buf *out, const struct run_change *c, const char *a, const char *b);

/* The i-th param that a param follows from, as in param_follows.def; NULL: there are no more. */
const char *run_change_cause(const char *key, size_t i);

#endif
