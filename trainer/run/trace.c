/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: one list of the spans of a step, under a lock: a traced step adds some hundreds. Spans of other threads that
 * end between two steps go to a second list. */
#include "trainer/run/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/mem/mem.h"

#define TRIES 5
#define SPANS_MAX ((size_t)1 << 20)

struct span_list {
	struct trace_span *spans;
	size_t n, room, lost;
};

struct trace {
	int64_t first, last;
	int64_t date_offset_ns; /* read once, so that adjacent steps stay adjacent in the record */
	int64_t step;		/* step of the last trace_begin; 0: none yet */
	double from_s;
	_Atomic bool on;
	pthread_mutex_t lock;
	struct span_list now, between; /* spans of the step; spans that end before the next one begins */
};

static int64_t read_clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the offset from the steady clock to the date. It is the same on all ranks of a machine to a microsecond, as
 * the clocks are read right after each other. */
static int64_t date_offset(void)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < TRIES; i++) {
		int64_t before = read_clock_of(CLOCK_MONOTONIC), date = read_clock_of(CLOCK_REALTIME);
		int64_t took = read_clock_of(CLOCK_MONOTONIC) - before;

		if (took < best) {
			best = took;
			offset = date - before - took / 2;
		}
	}
	return offset;
}

struct trace *trace_new(int64_t first, int64_t last)
{
	struct trace *t = mem_zalloc(sizeof(*t));

	t->first = first;
	t->last = last;
	t->date_offset_ns = date_offset();
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->now.spans);
	free(t->between.spans);
	free(t);
}

bool trace_on(const struct trace *t)
{
	return t && atomic_load_explicit(&t->on, memory_order_relaxed);
}

bool trace_covers(const struct trace *t, int64_t step)
{
	return t && step >= t->first && step <= t->last;
}

double trace_from(const struct trace *t)
{
	return t->from_s;
}

int64_t trace_date_offset_ns(const struct trace *t)
{
	return t->date_offset_ns;
}

/* Called under the lock, like all changes of a list. */
static void append_span(struct span_list *l, const struct trace_span *s)
{
	if (l->n >= SPANS_MAX || !array_push(&l->spans, &l->n, &l->room, *s))
		l->lost++;
}

/* Moves spans that ended since the step's begin to the step. */
static void adopt_earlier_spans(struct trace *t)
{
	for (size_t i = 0; i < t->between.n; i++)
		if (t->between.spans[i].to_s > t->from_s)
			append_span(&t->now, &t->between.spans[i]);
	t->now.lost += t->between.lost;
}

bool trace_begin(struct trace *t, int64_t step, double from_s)
{
	bool on = trace_covers(t, step);

	if (!t)
		return false;
	pthread_mutex_lock(&t->lock);
	t->now.n = t->now.lost = 0;
	t->step = step;
	t->from_s = from_s;
	if (on)
		adopt_earlier_spans(t);
	t->between.n = t->between.lost = 0;
	atomic_store(&t->on, on);
	pthread_mutex_unlock(&t->lock);
	return on;
}

void trace_add(struct trace *t, const struct trace_span *s)
{
	pthread_mutex_lock(&t->lock);
	if (trace_on(t))
		append_span(&t->now, s);
	else if (trace_covers(t, t->step + 1))
		append_span(&t->between, s);
	pthread_mutex_unlock(&t->lock);
}

static int compare_spans(const void *a, const void *b)
{
	const struct trace_span *x = a, *y = b;
	int rows = strcmp(x->row, y->row);

	if (rows || x->number != y->number)
		return rows ? rows : x->number - y->number;
	return (x->from_s > y->from_s) - (x->from_s < y->from_s);
}

static void fill_step_gap(struct trace *t, double from_s, double to_s)
{
	if (to_s > from_s)
		append_span(&t->now, &(struct trace_span){ TRACE_STEP_ROW, 0, "other", "other", -1, from_s, to_s });
}

const struct trace_span *trace_end(struct trace *t, double to_s, size_t *ret_n, size_t *ret_lost)
{
	struct span_list *l = &t->now;
	double at_s = t->from_s;
	size_t n;

	pthread_mutex_lock(&t->lock);
	atomic_store(&t->on, false);
	if (l->n)
		qsort(l->spans, l->n, sizeof(*l->spans), compare_spans);
	n = l->n;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(l->spans[i].row, TRACE_STEP_ROW))
			continue;
		fill_step_gap(t, at_s, l->spans[i].from_s);
		at_s = l->spans[i].to_s;
	}
	fill_step_gap(t, at_s, to_s);
	if (l->n)
		qsort(l->spans, l->n, sizeof(*l->spans), compare_spans);
	*ret_n = l->n;
	*ret_lost = l->lost;
	pthread_mutex_unlock(&t->lock);
	return l->spans;
}
