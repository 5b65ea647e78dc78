/* SPDX-License-Identifier: Apache-2.0 */
/* series_summary.c: summaries of points, independent of order; points in memory; spikes; what a restart hides. */
#include "web/store/points/series_summary.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"

void sum_init(struct sum *s)
{
	memset(s, 0, sizeof(*s));
	s->min = NAN;
	s->max = NAN;
}

static int compare_nan_last(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
	return (a > b) - (a < b);
}

int sum_order(const struct sum_point *a, const struct sum_point *b)
{
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->time != b->time)
		return compare_nan_last(a->time, b->time);
	return compare_nan_last(a->value, b->value);
}

static void take_min(struct sum *s, double v, int64_t step)
{
	if (!isfinite(v))
		return;
	if (isnan(s->min) || v < s->min || (v == s->min && step < s->min_step)) {
		s->min = v;
		s->min_step = step;
	}
}

static void take_max(struct sum *s, double v, int64_t step)
{
	if (!isfinite(v))
		return;
	if (isnan(s->max) || v > s->max || (v == s->max && step < s->max_step)) {
		s->max = v;
		s->max_step = step;
	}
}

static void take_nonfinite(struct sum *s, uint64_t n, int64_t step)
{
	if (!n)
		return;
	if (!s->nonfinite || step < s->nonfinite_step)
		s->nonfinite_step = step;
	s->nonfinite += n;
}

void sum_add(struct sum *s, const struct sum_point *p)
{
	if (!s->count || sum_order(p, &s->first) < 0)
		s->first = *p;
	if (!s->count || sum_order(p, &s->last) >= 0)
		s->last = *p;
	s->count++;
	take_min(s, p->value, p->step);
	take_max(s, p->value, p->step);
	take_nonfinite(s, !isfinite(p->value), p->step);
	s->infinite = s->infinite || isinf(p->value);
}

/* --- a summary in a row --------------------------------------------------------------------------------------- */

/* Older stores have infinities as extremes: the finite one is unknown. */
static double read_extreme(struct db_rows *q, enum db_column column, bool *io_infinite)
{
	double v = db_f64(q, column);

	*io_infinite = *io_infinite || isinf(v);
	return isinf(v) ? NAN : v;
}

void sum_row_read(struct db_rows *q, enum db_column count, struct sum *ret)
{
	ret->count = (uint64_t)db_i64(q, count);
	ret->nonfinite = (uint64_t)(db_i64(q, count + 1) & ~SUM_INFINITE_BIT);
	ret->infinite = db_i64(q, count + 1) & SUM_INFINITE_BIT;
	ret->first.value = db_f64(q, count + 2);
	ret->last.value = db_f64(q, count + 3);
	ret->min = read_extreme(q, count + 4, &ret->infinite);
	ret->max = read_extreme(q, count + 5, &ret->infinite);
	ret->first.step = db_i64(q, count + 6);
	ret->last.step = db_i64(q, count + 7);
	ret->min_step = db_i64(q, count + 8);
	ret->max_step = db_i64(q, count + 9);
	ret->first.time = db_f64(q, count + 10);
	ret->last.time = db_f64(q, count + 11);
	ret->nonfinite_step = db_i64(q, count + 12);
}

/* --- points in memory ----------------------------------------------------------------------------------------- */

void tail_add(struct point_tail *t, const struct sum_point *points, size_t n)
{
	mem_reserve(&t->points, &t->cap, t->count + n);
	memcpy(t->points + t->count, points, n * sizeof(*points));
	t->count += n;
}

void tail_done(struct point_tail *t)
{
	free(t->points);
	*t = (struct point_tail){ 0 };
}

/* --- spikes --------------------------------------------------------------------------------------------------- */

#define REACH 16
#define FEWEST 8

bool spike_watches(const char *key)
{
	size_t n = strlen(key);

	return n >= 4 && !strcmp(key + n - 4, "loss") && strncmp(key, "epoch/", 6) != 0;
}

/* The distance of p[i] to the median around it; 0 if it is not a spike. */
static double weigh_spike(const struct sum_point *p, size_t n, size_t i)
{
	size_t from = i > REACH ? i - REACH : 0, to = i + REACH < n ? i + REACH + 1 : n, k, count = 0;
	double around[2 * REACH], middle, deviation;

	for (k = from; k < to; k++)
		if (k != i && isfinite(p[k].value))
			around[count++] = p[k].value;
	if (count < FEWEST)
		return 0;
	middle = median_robust(around, count, &deviation);
	return p[i].value > 2 * fabs(middle) && p[i].value - middle > 6 * deviation ? p[i].value - middle : 0;
}

long spike_find(const struct sum_point *p, size_t n, double *ret_weight)
{
	long best = -1;
	double best_weight = 0, weight;
	size_t i;

	for (i = 1; i + 1 < n; i++) {
		double v = p[i].value, before = p[i - 1].value, after = p[i + 1].value;

		if (!isfinite(v) || !isfinite(before) || !isfinite(after) || v <= 2 * before || v <= 2 * after)
			continue;
		weight = weigh_spike(p, n, i);
		if (weight > best_weight) {
			best_weight = weight;
			best = (long)i;
		}
	}
	*ret_weight = best_weight;
	return best;
}

/* --- what a restart hides ------------------------------------------------------------------------------------- */

struct hide_segment {
	int64_t number; /* first member, for list_find */
	struct hide hide;
};

bool hide_counts_epochs(const char *key)
{
	return !strncmp(key, "epoch/", 6);
}

int64_t hide_from(const struct hide *h, const char *key)
{
	return !h ? HIDE_NONE : hide_counts_epochs(key) ? h->epoch : h->step;
}

int hide_load(struct hide_list *ret, struct db *d, int64_t run_id, struct arena *a, struct err *err)
{
	struct hide_list l = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_segment_list, err, "i", run_id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &l.segments, &l.count,
			  (struct hide_segment){ .number = db_i32(q, COL_segment_list_number),
						 .hide = { db_i64(q, COL_segment_list_hide_step),
							   db_i64(q, COL_segment_list_hide_epoch) } });
	if (!rc)
		*ret = l;
	return rc;
}

const struct hide *hide_get(const struct hide_list *l, int segment)
{
	size_t at = list_find(l->segments, l->count, sizeof(*l->segments), segment);

	return at < l->count && l->segments[at].number == segment ? &l->segments[at].hide : NULL;
}
