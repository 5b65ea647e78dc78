/* run_change.h: how much faster one side is than another, with intervals, and in which phases. A side is one run or several
 * equal ones (the same params but seed and name).
 *
 * With several runs on both sides the run is the unit: Welch's t on the logarithms of their seconds a sample. Where a
 * side is one run, the spread between equal runs is borrowed: from the other side and from further groups of equal runs
 * (the pool). Where there is none at all no interval is given, because nothing tells how much equal runs differ.
 * Neither is it with fewer than CHANGE_EFFECTIVE_LEAST effective steps on a side. */
#ifndef DPT_INSIGHT_RUN_CHANGE_H
#define DPT_INSIGHT_RUN_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/insight/step_time.h"

#define CHANGE_CONFIDENCE 0.95
#define CHANGE_EFFECTIVE_LEAST 10

struct change_side {
	const struct step_time *runs;
	size_t n;
};

/* Spread between equal runs, gathered group by group. Zeroed: none. */
struct change_pool {
	double log_squares;           /* squared deviations of log(seconds) from their group's mean */
	double within;                /* sum of the runs' own variances, over runs */
	double squares[STEP_TIME_PHASES];  /* of phase / mean seconds of the group */
	double df;                    /* runs less groups */
	size_t runs;
};

void change_pool_add(struct change_pool *pool, struct change_side group);

enum change_basis {
	CHANGE_REPEATS,  /* repeats on both sides */
	CHANGE_POOLED,   /* a side of one run: the spread of other repeats */
	CHANGE_ALONE,    /* one run a side, and nothing tells how much equal runs differ: no interval */
	CHANGE_TOO_FEW,  /* effective steps: no interval */
};

struct change_part {
	double seconds;   /* a sample: B's less A's */
	double low, high; /* NaN: none given */
};

struct change {
	enum change_basis basis;
	double seconds[2];        /* a sample, A and B: geometric means of the runs */
	double factor, low, high; /* A's seconds / B's: above 1, B is faster; low and high NaN: none given */
	double steps_low, steps_high; /* as the steps of these very runs alone would have it; NaN: too few */
	struct change_part whole;
	struct change_part phase[STEP_TIME_PHASES]; /* the seconds sum to the whole's */
};

/* Half the width of the 95 % interval of the difference of two means (Welch); NaN with fewer than two values a side. */
double change_half_width(const double *a, size_t n_a, const double *b, size_t n_b);

/* Both sides have a run, each with steps. pool: of further groups than the two sides. */
void change_of(struct change_side a, struct change_side b, const struct change_pool *pool, struct change *ret);

#endif
