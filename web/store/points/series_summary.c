/* series_summary.c: summaries of points, independent of order. */
#include "web/store/points/series_summary.h"

#include <math.h>
#include <string.h>

void sum_init(struct sum *s)
{
	memset(s, 0, sizeof *s);
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
	if (isnan(v))
		return;
	if (isnan(s->min) || v < s->min || (v == s->min && step < s->min_step)) {
		s->min = v;
		s->min_step = step;
	}
}

static void take_max(struct sum *s, double v, int64_t step)
{
	if (isnan(v))
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
}
