/* steps.h: points of a run's series, in any order, to its steps: each the one of the rank that the others waited for.
 *
 *	rc = steps_new(&s, &(struct steps_opts){ .first = 1, .last = 400, .ranks = 2 }, &err);
 *	…for each point of a key with steps_series(key) >= 0: steps_add(s, &point)…
 *	n = steps_take(s, &batch, rows);            (room for steps_span(s) rows)
 *	rc = step_time_of(rows, n, steps_settled(s), &pace, &err);
 *	steps_free(s);
 */
#ifndef DPT_INSIGHT_STEPS_H
#define DPT_INSIGHT_STEPS_H

#include <stdbool.h>

#include "tracker/insight/step_time.h"

/* Steps and cells (steps x ranks) that are looked at; callers take the last ones of longer runs. */
enum { STEPS_MAX = 10000, STEPS_CELLS_MAX = 200000 };

/* Series that are asked for besides those of the phases. */
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
	STEPS_BARE,
	STEPS_MARK,
	STEPS_SERIES
};

struct steps;

struct steps_opts {
	int64_t first, last; /* steps; at most STEPS_MAX, first moves up otherwise */
	int ranks;           /* 0 .. ranks-1; at least 1 */
};

struct steps_point {
	/* Of steps_series (-1: it is passed over), or STEPS_MARK: only its time counts, where a run has no
	 * phase/step. */
	int series;
	int rank;    /* -1: of the run */
	int segment; /* a restart begins a new one */
	int64_t step;
	double wall_time, value;
};

/* How many samples a step has: global, and in the last one of each epoch what is left. */
struct steps_batch {
	double global;
	int64_t steps_per_epoch; /* 0: not known */
	double last;             /* 0: not known */
};

int steps_new(struct steps **ret, const struct steps_opts *o, struct err *err); /* ERR_NOMEM */
void steps_free(struct steps *s);                                               /* NULL is fine */

int64_t steps_first(const struct steps *s);
size_t steps_span(const struct steps *s);

/* "phase/backward", "phase/step", "data/workers"; -1: does not matter here. */
int steps_series(const char *key);
const char *steps_key(int series); /* of a series below STEPS_MARK; NULL: none */

/* Points outside of the range and values that are not finite are passed over. */
void steps_add(struct steps *s, const struct steps_point *p);

/* How many steps there are, in order. What of a step is no known part of it is other; what lies between its begin and
 * the end of the one before, by the clock of the lowest rank, is between. Without phase/step all time from one mark to
 * the next is other. */
size_t steps_take(const struct steps *s, const struct steps_batch *batch, struct step_time_step *ret);

/* Of the steps from `from` on, a step: seconds and phases of one rank (-1: of the run as a whole); false: it has
 * none. */
bool steps_rank(const struct steps *s, int rank, int64_t from, double *ret_seconds, double ret_phase[STEP_TIME_PHASES]);

/* The same of one of the series behind STEPS_WORKERS: mean over the ranks that have it; NaN: none has. Steps without a
 * point count as 0. */
double steps_mean(const struct steps *s, int series, int64_t from);

/* The largest value of such a series, of any rank and step; NaN: none has one. */
double steps_most(const struct steps *s, int series);

int64_t steps_settled(const struct steps *s); /* INT64_MIN: never changed */

#endif
