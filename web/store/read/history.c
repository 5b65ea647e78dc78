/* SPDX-License-Identifier: Apache-2.0 */
/* history.c: pages by (time, step, value). A heap keeps the smallest points after a place while chunks and log are
 * scanned; chunks that cannot have any are not read. */
#include "tracker/mem/mem.h"
#include "web/store/read/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "web/store/points/scan.h"
#include "web/store/read/read_inside.h"

struct heap {
	struct sum_point *points; /* the largest at the top */
	size_t count, cap, max;
	struct history_place after;
	struct scan_window window;
	const struct series_select_series *series;
};

int64_t history_time_ms(double wall_s)
{
	return wall_s > -9e15 && wall_s < 9e15 ? llround(wall_s * 1e3) : 0;
}

int history_parse(struct history_place *ret, const char *token, struct err *err)
{
	struct history_place p = { .begun = true };
	uint64_t bits;
	int end = 0;

	*ret = (struct history_place){ 0 };
	if (!token || !*token)
		return 0;
	if (strlen(token) >= HISTORY_TOKEN_BYTES ||
	    sscanf(token, "%" SCNd64 ".%" SCNd64 ".%16" SCNx64 ".%" SCNu64 "%n", &p.time_ms, &p.step, &bits, &p.given,
		   &end) != 4 ||
	    token[end])
		return err_set(err, ERR_USAGE, "Invalid page token: '%.60s'", token);
	memcpy(&p.value, &bits, sizeof(bits));
	*ret = p;
	return 0;
}

void history_token(const struct history_place *p, char ret[HISTORY_TOKEN_BYTES])
{
	uint64_t bits;

	memcpy(&bits, &p->value, sizeof(bits));
	snprintf(ret, HISTORY_TOKEN_BYTES, "%" PRId64 ".%" PRId64 ".%016" PRIx64 ".%" PRIu64, p->time_ms, p->step, bits,
		 p->given);
}

static int compare_values_nan(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	return (a > b) - (a < b);
}

static int compare_history_points(const struct sum_point *a, int64_t time_ms, int64_t step, double value)
{
	int64_t ms = history_time_ms(a->time);

	if (ms != time_ms)
		return ms < time_ms ? -1 : 1;
	if (a->step != step)
		return a->step < step ? -1 : 1;
	return compare_values_nan(a->value, value);
}

static int compare_history_times(const void *x, const void *y)
{
	const struct sum_point *a = x, *b = y;

	return compare_history_points(a, history_time_ms(b->time), b->step, b->value);
}

static void sift_down(struct heap *h, size_t at)
{
	for (;;) {
		size_t big = at, child = 2 * at + 1, end = child + 2;
		struct sum_point swap;

		for (; child < end && child < h->count; child++)
			if (compare_history_times(&h->points[child], &h->points[big]) > 0)
				big = child;
		if (big == at)
			return;
		swap = h->points[at];
		h->points[at] = h->points[big];
		h->points[big] = swap;
		at = big;
	}
}

/* Skips later chunks, which have no candidates. */
static void narrow_history(struct heap *h)
{
	h->window.max_time = (double)(history_time_ms(h->points[0].time) + 1) / 1e3;
}

/* Adds a point to the heap; a full heap replaces its largest. */
static void put_history_point(struct heap *h, const struct sum_point *p)
{
	size_t i;

	if (h->count == h->max) {
		if (compare_history_times(p, &h->points[0]) >= 0)
			return;
		h->points[0] = *p;
		sift_down(h, 0);
		narrow_history(h);
		return;
	}
	mem_push(&h->points, &h->count, &h->cap, *p);
	if (h->count == h->max) {
		for (i = h->max / 2; i-- > 0;)
			sift_down(h, i);
		narrow_history(h);
	}
}

static void take_history_points(struct heap *h, const struct series_select_series *s, const struct sum_point *p,
				size_t n)
{
	const struct history_place *after = &h->after;
	size_t i;

	for (i = 0; i < n; i++) {
		if (hide_has(s->hide, p[i].step) || p[i].step < h->window.min_step || p[i].step > h->window.max_step)
			continue;
		if (after->begun && compare_history_points(&p[i], after->time_ms, after->step, after->value) < 0)
			continue;
		put_history_point(h, &p[i]);
	}
}

static int take_history_chunk(void *arg, const struct chunk *c, struct err *err)
{
	struct heap *h = arg;
	struct sum_point room[CHUNK_POINTS];

	if (chunk_points(c, room))
		return scan_damaged(err, "a chunk of series", h->series->id);
	take_history_points(h, h->series, room, c->points);
	return 0;
}

struct log_arg {
	struct heap *h;
	const struct series_select_run *run;
	size_t *order; /* positions in run->series by ascending id */
};

static int take_history_log(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct log_arg *l = arg;

	(void)err;
	take_history_points(l->h, &l->run->series[l->order[at]], points, n);
	return 0;
}

static int compare_series_ids(const void *x, const void *y, void *series)
{
	const struct series_select_series *s = series;
	int64_t a = s[*(const size_t *)x].id, b = s[*(const size_t *)y].id;

	return (a > b) - (a < b);
}

static int collect_history(struct db *d, struct heap *h, const struct series_select_run *run, struct arena *a,
			   struct err *err)
{
	int64_t *ids = arena_array(a, run->count + 1, sizeof(*ids));
	struct log_arg l = { h, run, arena_array(a, run->count + 1, sizeof(*l.order)) };
	size_t i;
	int rc = 0;

	for (i = 0; i < run->count; i++)
		l.order[i] = i;
	qsort_r(l.order, run->count, sizeof(*l.order), compare_series_ids, run->series);
	for (i = 0; i < run->count; i++)
		ids[i] = run->series[l.order[i]].id;
	rc = scan_log(d, &(struct series_scan){ run->id, ids, run->count, take_history_log, &l }, err);
	for (i = 0; i < run->count && !rc; i++) {
		h->series = &run->series[i];
		h->window.series = h->series->id;
		rc = scan_series_window(d, &h->window, take_history_chunk, h, err);
	}
	return rc;
}

/* Cuts the page out of the sorted heap: without the points returned already and the extra one that shows there are
 * more. */
static void cut_history_page(struct heap *h, struct history_sel *sel, struct arena *a, struct history_points *ret)
{
	struct history_place *place = &sel->place;
	uint64_t skip = place->begun ? place->given : 0;
	size_t i, n, from = 0;

	if (h->count)
		qsort(h->points, h->count, sizeof(*h->points), compare_history_times);
	while (from < h->count && skip &&
	       !compare_history_points(&h->points[from], place->time_ms, place->step, place->value)) {
		from++;
		skip--;
	}
	n = h->count - from < sel->limit ? h->count - from : sel->limit;
	ret->more = h->count - from > sel->limit;
	ret->points = arena_array(a, n + 1, sizeof(*ret->points));
	for (i = 0; i < n; i++) {
		const struct sum_point *p = &h->points[from + i];

		ret->points[i] = *p;
		if (!place->begun || compare_history_points(p, place->time_ms, place->step, place->value))
			*place = (struct history_place){ true, history_time_ms(p->time), p->step, p->value, 0 };
		place->given++;
	}
	ret->count = n;
}

static int load_history(struct store *s, const char *run_id, const char *key, struct heap *h, struct err *err)
{
	struct points_sel sel = { .keys = &key, .key_count = 1, .rank = -1 };
	struct arena *a = arena_new();
	struct series_select_run run;
	struct db *d = NULL;
	int rc = readers_take_permitted(s, &d, err);

	if (!rc)
		rc = series_select_run(d, &(struct series_select_want){ &sel, run_id }, a, &run, err);
	if (rc > 0)
		rc = run.count ? collect_history(d, h, &run, a, err) : 0;
	if (d)
		readers_give(s, d);
	arena_free(a);
	return rc;
}

int history_page(struct store *s, struct history_sel *sel, struct arena *a, struct history_points *ret, struct err *err)
{
	const struct history_place *place = &sel->place;
	struct heap h = { .after = *place, .window = { INT64_MIN, INT64_MAX, -INFINITY, INFINITY, 0 } };
	int rc;

	h.max = sel->limit + 1 + (place->begun ? (size_t)place->given : 0);
	if (place->begun)
		h.window.min_time = (double)(place->time_ms - 1) / 1e3;
	rc = load_history(s, sel->run, sel->key, &h, err);
	if (!rc)
		cut_history_page(&h, sel, a, ret);
	free(h.points);
	return rc;
}

/* --- samples ------------------------------------------------------------------------------------------------ */

static int compare_history_steps(const void *x, const void *y)
{
	return sum_order(x, y);
}

/* Takes the first of each of n equal shares (larger shares first, as SQL's NTILE), and the last point. */
static size_t spread_points(const struct sum_point *all, size_t count, size_t n, struct sum_point *to)
{
	size_t share = count / n, larger = count % n, at = 0, i, out = 0;

	for (i = 0; i < n && at < count; i++) {
		to[out++] = all[at];
		at += share + (i < larger);
	}
	if (!out || !sum_order(&to[out - 1], &all[count - 1]))
		return out;
	if (out < n)
		out++;
	to[out - 1] = all[count - 1];
	return out;
}

int history_sample(struct store *s, const struct history_sample *sel, struct arena *a, struct history_points *ret,
		   struct err *err)
{
	struct heap h = { .max = SIZE_MAX, .window = { sel->from, sel->to, -INFINITY, INFINITY, 0 } };
	int rc = load_history(s, sel->run, sel->key, &h, err);

	if (!rc)
		*ret = (struct history_points){ .points = arena_array(a, sel->n + 1, sizeof(*ret->points)) };
	if (!rc && h.count) {
		qsort(h.points, h.count, sizeof(*h.points), compare_history_steps);
		ret->count = spread_points(h.points, h.count, sel->n, ret->points);
	}
	free(h.points);
	return rc;
}
