/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c: computes outlines and caches them in a direct-mapped table, where a new entry replaces the old one. */
#include "tracker/mem/mem.h"
#include "web/store/points/outline.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACES 10000 /* at most 48 MB: the chunks of 20 million points */

struct kept_outline {
	int64_t chunk;
	struct outline *outline;
	unsigned char *bytes; /* bytes of the chunk; NULL: not cached */
	size_t len;
};

struct outlines {
	pthread_rwlock_t lock;
	int64_t rev;
	char rows_of[DB_ROWS_OF_BYTES];
	uint64_t generation;
	uint64_t chunk_bytes, chunk_bytes_max;
	size_t count;
	size_t hand; /* the slot whose bytes are evicted next */
	struct kept_outline places[PLACES];
};

static void add_axis_point(struct outline_axis *a, double x, double v, unsigned at)
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
		add_axis_point(&g.by_step, (double)p[i].step, p[i].value, i);
		add_axis_point(&g.by_time, p[i].time, p[i].value, i);
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

struct outlines *outlines_new(uint64_t chunk_bytes)
{
	struct outlines *o = mem_zalloc(sizeof(*o));

	pthread_rwlock_init(&o->lock, NULL);
	o->chunk_bytes_max = chunk_bytes;
	o->generation = 1;
	return o;
}

static void drop_bytes(struct outlines *o, struct kept_outline *p)
{
	free(p->bytes);
	o->chunk_bytes -= p->len;
	p->bytes = NULL;
	p->len = 0;
}

static void forget_outlines(struct outlines *o)
{
	size_t i;

	for (i = 0; i < PLACES; i++) {
		drop_bytes(o, &o->places[i]);
		free(o->places[i].outline);
		o->places[i].outline = NULL;
	}
	o->count = 0;
}

void outlines_free(struct outlines *o)
{
	if (!o)
		return;
	forget_outlines(o);
	pthread_rwlock_destroy(&o->lock);
	free(o);
}

uint64_t outlines_generation(struct outlines *o, int64_t rev, const char *rows_of)
{
	uint64_t generation;
	bool other;

	pthread_rwlock_wrlock(&o->lock);
	other = strcmp(o->rows_of, rows_of) != 0;
	if (other || rev > o->rev) {
		forget_outlines(o);
		snprintf(o->rows_of, sizeof(o->rows_of), "%s", rows_of);
		o->rev = rev;
		o->generation++;
	}
	generation = rev == o->rev ? o->generation : 0;
	pthread_rwlock_unlock(&o->lock);
	return generation;
}

/* Chunks of one series get adjacent slots. */
static size_t outline_slot(int64_t chunk)
{
	return (size_t)((uint64_t)chunk + ((uint64_t)chunk >> 20) * 2654435761u) % PLACES;
}

/* Under the lock. */
static bool has_outline_key(const struct outlines *o, const struct kept_outline *p, const struct outline_key *k)
{
	return p->outline && p->chunk == k->chunk && o->generation == k->generation;
}

bool outlines_get(struct outlines *o, const struct outline_key *k, struct outline_known *ret)
{
	const struct kept_outline *p = &o->places[outline_slot(k->chunk)];

	pthread_rwlock_rdlock(&o->lock);
	if (has_outline_key(o, p, k)) {
		*ret = (struct outline_known){ p->outline, p->bytes, p->len };
		return true;
	}
	pthread_rwlock_unlock(&o->lock);
	return false;
}

void outlines_release(struct outlines *o)
{
	pthread_rwlock_unlock(&o->lock);
}

bool outlines_want_bytes(const struct outlines *o)
{
	return o->chunk_bytes_max > 0;
}

uint64_t outlines_bytes(struct outlines *o)
{
	uint64_t bytes;

	pthread_rwlock_rdlock(&o->lock);
	bytes = o->count * sizeof(struct outline) + o->chunk_bytes;
	pthread_rwlock_unlock(&o->lock);
	return bytes;
}

void outlines_put(struct outlines *o, const struct outline_key *k, struct outline *outline)
{
	struct kept_outline *p = &o->places[outline_slot(k->chunk)];

	pthread_rwlock_wrlock(&o->lock);
	if (k->generation == o->generation) {
		o->count += !p->outline;
		drop_bytes(o, p);
		free(p->outline);
		*p = (struct kept_outline){ .chunk = k->chunk, .outline = outline };
		outline = NULL;
	}
	pthread_rwlock_unlock(&o->lock);
	free(outline);
}

static void make_outline_room(struct outlines *o, size_t len)
{
	while (o->chunk_bytes + len > o->chunk_bytes_max) {
		drop_bytes(o, &o->places[o->hand]);
		o->hand = (o->hand + 1) % PLACES;
	}
}

void outlines_put_bytes(struct outlines *o, const struct outline_key *k, const void *bytes, size_t len)
{
	struct kept_outline *p = &o->places[outline_slot(k->chunk)];
	unsigned char *copy;

	if (!len || len > o->chunk_bytes_max)
		return;
	copy = mem_dup(bytes, len);
	pthread_rwlock_wrlock(&o->lock);
	if (has_outline_key(o, p, k) && !p->bytes) {
		make_outline_room(o, len);
		p->bytes = copy;
		p->len = len;
		o->chunk_bytes += len;
		copy = NULL;
	}
	pthread_rwlock_unlock(&o->lock);
	free(copy);
}
