/* SPDX-License-Identifier: Apache-2.0 */
/* series_summary.h: what is known of a series besides its chunks: the summary (number of points, first, last,
 * smallest, largest, independent of order), points that are not folded, its worst spike, and which points a restart
 * hides. */
#ifndef DPT_STORE_SERIES_SUMMARY_H
#define DPT_STORE_SERIES_SUMMARY_H

#include "web/store/db/db.h"

struct sum_point {
	int64_t step;
	double time; /* wall, seconds since 1970 */
	double value;
};

/* first and last are by (step, time, value), with NaN last. min and max are of finite values (NaN without any): a
 * value that is not finite is never the best. The earliest step wins a tie. */
struct sum {
	uint64_t count;
	uint64_t nonfinite;
	bool infinite; /* one of those is an infinity; else all are NaN */
	struct sum_point first, last;
	double min, max;
	int64_t min_step, max_step;
	int64_t nonfinite_step; /* smallest one; valid when nonfinite > 0 */
};

void sum_init(struct sum *s);
void sum_add(struct sum *s, const struct sum_point *p);

/* Compares by step, time, value; NaN last. */
int sum_order(const struct sum_point *a, const struct sum_point *b);

/* A row has infinite as a bit of nonfinite. */
#define SUM_INFINITE_BIT (INT64_C(1) << 62)
#define SUM_STORED_NONFINITE(s) ((int64_t)(s)->nonfinite | ((s)->infinite ? SUM_INFINITE_BIT : 0))

/* A summary as the 13 columns `count` to `nonfinite_step` of the tables series and metric. */
/* count: the column of that name; schema/gen/sql.awk ensures the order of the other 12. */
void sum_row_read(struct db_rows *q, enum db_column count, struct sum *ret);

/* For binding. */
#define SUM_ROW_FMT "iiddddiiiiddi"
#define SUM_ROW_ARGS(s)                                                                                                \
	(int64_t)(s)->count, SUM_STORED_NONFINITE(s), (s)->first.value, (s)->last.value, (s)->min, (s)->max,           \
		(s)->first.step, (s)->last.step, (s)->min_step, (s)->max_step, (s)->first.time, (s)->last.time,        \
		(s)->nonfinite_step

/* A growing array of points of one series in order of arrival, for points that are not folded. Caller's
 * storage, initially all zero. Private to web/store. */
struct point_tail {
	struct sum_point *points;
	size_t count, cap;
};

void tail_add(struct point_tail *t, const struct sum_point *points, size_t n);
void tail_done(struct point_tail *t);

/* Finds single points far above their neighbourhood. Pure functions. */
#define SPIKE_CONTEXT 40 /* points before the new ones that a search needs */

/* Returns true for series whose spikes are reported: training losses. */
bool spike_watches(const char *key);

/* Finds the worst spike among points in step order. A spike is finite and more than twice both neighbours and the
 * median of up to 32 points around it, and exceeds that median by 6 deviations (median_robust). Returns its index and
 * in *ret_weight its distance to the median; -1: none. A run in progress knows only the past: learning_spikes
 * (tracker/insight/learning.h) finds rises that last, too, with a median at each step. Here nearly all points fail the
 * comparison with their neighbours, so a fold costs no medians. */
long spike_find(const struct sum_point *p, size_t n, double *ret_weight);

/* Which points a restart hides. Points of a segment at or after the start of a later segment are hidden, in
 * summaries and in charts. The limit is a step or, for keys that count epochs, an epoch. Knows only this of
 * segments. */
#define HIDE_NONE INT64_MAX

/* Of one segment: the first hidden step and epoch, or HIDE_NONE. */
struct hide {
	int64_t step, epoch;
};

/* Adds a later segment that began at (step, epoch). */
static inline void hide_beyond(struct hide *h, int64_t step, int64_t epoch)
{
	h->step = step < h->step ? step : h->step;
	h->epoch = epoch < h->epoch ? epoch : h->epoch;
}

/* Returns true if keys of that name count epochs instead of steps. */
bool hide_counts_epochs(const char *key);

/* The first hidden step (or epoch) of a key in a segment. h NULL: unknown, nothing is hidden. */
int64_t hide_from(const struct hide *h, const char *key);

static inline bool hide_has(int64_t from, int64_t step)
{
	return step >= from && from != HIDE_NONE;
}

/* The last visible step. */
static inline int64_t hide_last(int64_t from)
{
	return from == HIDE_NONE ? INT64_MAX : from - 1;
}

/* All segments of a run. */
struct hide_list {
	struct hide_segment *segments; /* by number */
	size_t count;
};

int hide_load(struct hide_list *ret, struct db *d, int64_t run_id, struct arena *a, struct err *err);
const struct hide *hide_get(const struct hide_list *l, int segment); /* NULL: unknown segment */

#endif
