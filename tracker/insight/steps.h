/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h: collects points of a run's series, in any order, into its steps. Each step is that of the rank that
 * the others waited for.
 *
 *	rc = steps_new(&s, &(struct steps_opts){ .first = 1, .last = 400, .ranks = 2 }, &err);
 *	…for each point of a key with steps_series(key) >= 0: steps_add(s, &point)…
 *	n = steps_take(s, &batch, rows);            (space for steps_span(s) rows)
 *	rc = step_time_of(rows, n, steps_settled(s), &pace, &err);
 *	steps_free(s);
 */
#ifndef DPT_INSIGHT_STEPS_H
#define DPT_INSIGHT_STEPS_H

#include "tracker/insight/step_time.h"

/* Limits on steps and cells (steps x ranks); of longer runs only the last steps are used. */
enum { STEPS_MAX = 10000, STEPS_CELLS_MAX = 200000 };

/* Further series besides the phases. */
enum {
	STEPS_STEP = STEP_TIME_PHASES,
	STEPS_WORKERS,
	STEPS_COMM_TOTAL,
	STEPS_LOAD,
	STEPS_LOAD_CPU,
	STEPS_READY,
	STEPS_COPY,
	STEPS_WAIT,
	STEPS_SAVE_CPU,
	STEPS_CACHED,
	STEPS_MARK,
	STEPS_SERIES
};

struct steps;

struct steps_opts {
	int64_t first, last; /* steps; of more than STEPS_MAX the last ones are kept */
	int ranks;	     /* 0 .. ranks-1; at least 1 */
};

struct steps_point {
	/* Of steps_series (-1: ignored), or STEPS_MARK: only its time is used, for runs without phase/step. */
	int series;
	int rank;    /* -1: of the whole run */
	int segment; /* a restart begins a new one */
	int64_t step;
	double wall_time, value;
};

/* Samples per step: global, and fewer in the last step of each epoch. */
struct steps_batch {
	double global;
	int64_t steps_per_epoch; /* 0: unknown */
	double last;		 /* 0: unknown */
};

int steps_new(struct steps **ret, const struct steps_opts *o, struct err *err); /* ERR_NOMEM */
void steps_free(struct steps *s);						/* NULL is fine */

int64_t steps_first(const struct steps *s);
size_t steps_span(const struct steps *s);

/* "phase/backward", "phase/step", "data/workers"; -1: not used. */
int steps_series(const char *key);
const char *steps_key(int series); /* of a series below STEPS_MARK; NULL: no key */

/* Ignores points outside the range and values that are not finite. */
void steps_add(struct steps *s, const struct steps_point *p);

/* Writes the steps in order and returns their number. STEP_TIME_other is the time of a step outside the known phases.
 * STEP_TIME_between is the time from the end of the previous step to its begin, by the clock of the lowest rank.
 * Without phase/step all time between marks is STEP_TIME_other. */
size_t steps_take(const struct steps *s, const struct steps_batch *batch, struct step_time_step *ret);

/* Means per step, from step `from` on: seconds and phases of one rank (-1: the whole run). Returns false if it has no
 * steps. */
bool steps_rank(const struct steps *s, int rank, int64_t from, double *ret_seconds, double ret_phase[STEP_TIME_PHASES]);

/* The same for one of the series after STEPS_WORKERS: mean over the ranks that have it; NaN: none. Steps without a
 * point count as 0. */
double steps_mean(const struct steps *s, int series, int64_t from);

/* Returns the largest value of such a series over all ranks and steps; NaN: no points. */
double steps_most(const struct steps *s, int series);

int64_t steps_settled(const struct steps *s); /* INT64_MIN: never changed */

#endif
