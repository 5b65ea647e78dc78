/* outline.c: makes outlines, and keeps them in a table in which each chunk has one place; the newer one takes it. */
#include "web/store/points/outline.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define PLACES 10000 /* 48 MB at most: the chunks of 20 million points */

struct kept {
	int64_t chunk;
	struct outline *outline;
};

struct outlines {
	pthread_rwlock_t lock;
	int64_t rev;
	size_t count;
	struct kept places[PLACES];
};

static void add_place(struct outline_axis *a, double x, double v, unsigned at)
{
	if (!at || x < a->low) {
		a->low = x;
		a->first = v;
	}
	if (!at || x >= a->high) {
		a->high = x;
		a->last = v;
	}
}

static void add_extremes(struct outline_part *g, const struct sum_point *p, bool any)
{
	double step = (double)p->step;

	if (!any || p->value < g->min || (p->value == g->min && step < g->by_step.min_at))
		g->by_step.min_at = step;
	if (!any || p->value < g->min || (p->value == g->min && p->time < g->by_time.min_at))
		g->by_time.min_at = p->time;
	if (!any || p->value > g->max || (p->value == g->max && step < g->by_step.max_at))
		g->by_step.max_at = step;
	if (!any || p->value > g->max || (p->value == g->max && p->time < g->by_time.max_at))
		g->by_time.max_at = p->time;
	g->min = any ? fmin(g->min, p->value) : p->value;
	g->max = any ? fmax(g->max, p->value) : p->value;
	g->sum += p->value;
}

static void describe_part(struct outline_part *ret, const struct sum_point *p, unsigned n)
{
	struct outline_part g = { .points = n, .min_step = p[0].step, .max_step = p[0].step };
	bool timed = true;
	unsigned i;

	for (i = 0; i < n; i++) {
		g.min_step = p[i].step < g.min_step ? p[i].step : g.min_step;
		g.max_step = p[i].step > g.max_step ? p[i].step : g.max_step;
		add_place(&g.by_step, (double)p[i].step, p[i].value, i);
		add_place(&g.by_time, p[i].time, p[i].value, i);
		if (isfinite(p[i].value))
			add_extremes(&g, &p[i], i > g.nonfinite);
		else
			g.nonfinite++;
		timed = timed && !isnan(p[i].time);
	}
	if (!timed)
		g.by_time.low = NAN;
	*ret = g;
}

void outline_describe(struct outline *ret, const struct chunk *c, const struct sum_point *points)
{
	unsigned i;

	ret->groups = c->groups;
	ret->min_time = ret->max_time = NAN;
	for (i = 0; i < c->points; i++) {
		ret->min_time = fmin(ret->min_time, points[i].time);
		ret->max_time = fmax(ret->max_time, points[i].time);
	}
	describe_part(&ret->all, points, c->points);
	for (i = 0; i < c->groups; i++) {
		chunk_group_span(c, i, &ret->span[i]);
		describe_part(&ret->part[i], points + (size_t)i * CHUNK_GROUP, ret->span[i].points);
	}
}

struct outlines *outlines_new(void)
{
	struct outlines *o = calloc(1, sizeof *o);

	if (o)
		pthread_rwlock_init(&o->lock, NULL);
	return o;
}

static void forget(struct outlines *o)
{
	size_t i;

	for (i = 0; i < PLACES; i++) {
		free(o->places[i].outline);
		o->places[i].outline = NULL;
	}
	o->count = 0;
}

void outlines_free(struct outlines *o)
{
	if (!o)
		return;
	forget(o);
	pthread_rwlock_destroy(&o->lock);
	free(o);
}

/* Chunks of one series lie side by side. */
static size_t stored_path(int64_t chunk)
{
	return (size_t)((uint64_t)chunk + ((uint64_t)chunk >> 20) * 2654435761u) % PLACES;
}

const struct outline *outlines_get(struct outlines *o, const struct outline_key *k)
{
	const struct kept *p = &o->places[stored_path(k->chunk)];

	pthread_rwlock_rdlock(&o->lock);
	if (p->outline && p->chunk == k->chunk && o->rev == k->rev)
		return p->outline;
	pthread_rwlock_unlock(&o->lock);
	return NULL;
}

void outlines_release(struct outlines *o)
{
	pthread_rwlock_unlock(&o->lock);
}

uint64_t outlines_bytes(struct outlines *o)
{
	uint64_t bytes;

	pthread_rwlock_rdlock(&o->lock);
	bytes = o->count * sizeof(struct outline);
	pthread_rwlock_unlock(&o->lock);
	return bytes;
}

void outlines_put(struct outlines *o, const struct outline_key *k, struct outline *outline)
{
	struct kept *p = &o->places[stored_path(k->chunk)];

	pthread_rwlock_wrlock(&o->lock);
	if (k->rev > o->rev) {
		forget(o);
		o->rev = k->rev;
	}
	if (k->rev == o->rev) {
		o->count += !p->outline;
		free(p->outline);
		*p = (struct kept){ k->chunk, outline };
		outline = NULL;
	}
	pthread_rwlock_unlock(&o->lock);
	free(outline);
}
