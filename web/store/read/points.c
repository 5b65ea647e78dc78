/* SPDX-License-Identifier: Apache-2.0 */
/* points.c: raw points in order. Each refill takes a new snapshot and finds its position by (series, step, number of
 * points of that step already returned). Points are never removed, so that position stays valid while points are
 * folded. */
#include "tracker/mem/mem.h"
#include "web/store/read/points.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "web/store/base/parts.h"
#include "web/store/points/chunks.h"
#include "web/store/points/scan.h"
#include "web/store/read/read_inside.h"

#define REFILL_POINTS 16384

struct points_cursor {
	struct store *s;
	struct arena *sel_arena, *run_arena; /* memory of the selection; of the current run */
	struct points_sel sel;
	size_t run_at; /* index of the current run in sel.runs */
	bool run_loaded, at_end;
	struct series_select_run run;
	size_t series_at;
	bool series_begun, heavy, series_done;
	int64_t step;  /* the next point has this step or a later one */
	uint64_t skip; /* points with exactly this step */
	struct point_tail buffer;
	size_t at;	   /* in the buffer */
	struct map *texts; /* keys that rows refer to */
};

static const char *const *copy_list(struct arena *a, const char *const *list, size_t n)
{
	const char **copy = arena_array(a, n, sizeof(*copy));
	size_t i;

	for (i = 0; i < n; i++)
		copy[i] = arena_strdup(a, list[i]);
	return copy;
}

/* Stable merge sort: points of one step stay in order of arrival. */
static void sort_steps(struct sum_point *p, size_t n)
{
	struct sum_point *spare, *from = p, *to;
	size_t width, i, a, b, out;

	for (i = 1; i < n && p[i - 1].step <= p[i].step; i++)
		;
	if (i >= n)
		return;
	spare = mem_alloc(n * sizeof(*spare));
	to = spare;
	for (width = 1; width < n; width *= 2) {
		for (i = 0; i < n; i += 2 * width) {
			size_t mid = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;

			for (a = i, b = mid, out = i; out < end; out++)
				to[out] = b >= end || (a < mid && from[a].step <= from[b].step) ? from[a++] : from[b++];
		}
		to = from;
		from = from == p ? spare : p;
	}
	if (from != p)
		memcpy(p, from, n * sizeof(*p));
	free(spare);
}

struct tail_scan {
	struct points_cursor *c;
	int64_t last_step;
	bool back;
};

static int take_tail_points(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct tail_scan *t = arg;
	size_t i;

	(void)at;
	(void)err;
	for (i = 0; i < n; i++) {
		t->back = t->back || points[i].step < t->last_step;
		t->last_step = points[i].step > t->last_step ? points[i].step : t->last_step;
	}
	tail_add(&t->c->buffer, points, n);
	return 0;
}

static int take_tail_copy(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct points_cursor *c = arg;

	(void)at;
	(void)err;
	tail_add(&c->buffer, points, n);
	return 0;
}

/* Drops points before the cursor, outside the range or hidden; the buffer is sorted. */
static void trim_cursor_points(struct points_cursor *c)
{
	const struct series_select_series *s = &c->run.series[c->series_at];
	int64_t shown = hide_last(s->hide), to = shown < c->sel.to_step ? shown : c->sel.to_step;
	size_t i, n = 0;

	/* Sorted, so nothing after the first point out of range is wanted. */
	if (c->buffer.count && c->buffer.points[c->buffer.count - 1].step > to)
		c->series_done = true;
	for (i = 0; i < c->buffer.count; i++) {
		if (c->buffer.points[i].step < c->step || c->buffer.points[i].step > to)
			continue;
		c->buffer.points[n++] = c->buffer.points[i];
	}
	c->buffer.count = n;
	for (i = 0; i < c->buffer.count && c->skip > 0 && c->buffer.points[i].step == c->step; i++)
		c->skip--;
	c->at = i;
	/* The skipped points stay before `at`, so that points_token can count them. */
	c->skip = i;
}

/* Points at the cursor's own step at the start of the buffer are not progress. */
static bool has_enough_points(const struct points_cursor *c)
{
	return c->buffer.count >= REFILL_POINTS + c->skip && c->buffer.points[c->buffer.count - 1].step > c->step;
}

static int take_cursor_chunk(struct points_cursor *c, const struct chunks *w, struct err *err)
{
	struct sum_point room[CHUNK_POINTS];
	struct chunk k;

	if (chunk_open(&k, w->data, w->bytes) || chunk_points(&k, room))
		return scan_damaged(err, "chunk", w->id);
	tail_add(&c->buffer, room, k.points);
	return 0;
}

static int load_ordered(struct points_cursor *c, struct db *d, struct err *err)
{
	const struct series_select_series *s = &c->run.series[c->series_at];
	struct tail_scan t = { .c = c, .last_step = INT64_MIN };
	struct chunks w;
	int rc = chunks_start_step(&w, d, &(struct chunks_step){ s->id, s->chunks, c->step }, err);

	if (rc)
		return rc;
	while (!rc && (rc = chunks_next(&w, err)) > 0) {
		rc = take_cursor_chunk(c, &w, err);
		if (!rc && has_enough_points(c)) {
			chunks_stop(&w, rc, err);
			return 0;
		}
	}
	chunks_stop(&w, rc, err);
	c->series_done = !rc;
	if (!rc)
		rc = scan_log(d, &(struct series_scan){ c->run.id, &s->id, 1, take_tail_points, &t }, err);
	return rc;
}

/* Decides at the start of a series whether it can be read in pieces. */
static int begin_series(struct points_cursor *c, struct db *d, struct err *err)
{
	const struct series_select_series *s = &c->run.series[c->series_at];
	struct tail_scan t = { .c = c, .last_step = s->folded.count ? s->folded.last.step : INT64_MIN };
	int rc = 0;

	c->buffer.count = 0;
	c->heavy = !s->ordered;
	if (!c->heavy)
		rc = scan_log(d, &(struct series_scan){ c->run.id, &s->id, 1, take_tail_points, &t }, err);
	c->heavy = c->heavy || t.back;
	c->series_begun = true;
	c->buffer.count = 0;
	return rc;
}

static int load_cursor_series(struct points_cursor *c, struct db *d, struct err *err)
{
	const struct series_select_series *s = &c->run.series[c->series_at];
	int rc = 0;

	if (!c->series_begun)
		rc = begin_series(c, d, err);
	c->buffer.count = c->at = 0;
	if (!rc && c->heavy) {
		rc = scan_points(d, &(struct series_scan){ c->run.id, &s->id, 1, take_tail_copy, c }, err);
		c->series_done = true;
	} else if (!rc) {
		rc = load_ordered(c, d, err);
	}
	if (rc)
		return rc;
	sort_steps(c->buffer.points, c->buffer.count);
	trim_cursor_points(c);
	return 0;
}

static void next_cursor_series(struct points_cursor *c)
{
	c->series_at++;
	c->series_begun = c->series_done = false;
	c->step = c->sel.from_step;
	c->skip = 0;
	c->buffer.count = c->at = 0;
}

/* Copies the texts of rows, which outlive the run. */
static void keep_texts(struct points_cursor *c)
{
	size_t i;

	c->run.name = arena_strdup(c->sel_arena, c->run.name);
	for (i = 0; i < c->run.count; i++)
		c->run.series[i].key = map_text(c->texts, c->run.series[i].key);
}

/* 1: there is a run, 0: no more. */
static int next_cursor_run(struct points_cursor *c, struct db *d, struct err *err)
{
	int rc;

	for (; c->run_at < c->sel.run_count; c->run_at++) {
		arena_free(c->run_arena);
		c->run_arena = arena_new();
		rc = series_select_run(d, &(struct series_select_want){ &c->sel, c->sel.runs[c->run_at] }, c->run_arena,
				       &c->run, err);
		if (rc < 0)
			return rc;
		if (!rc || !c->run.count)
			continue;
		keep_texts(c);
		c->run_loaded = true;
		c->series_at = (size_t)-1;
		next_cursor_series(c);
		return 1;
	}
	return 0;
}

/* Reads points until the buffer has some or the end is reached. */
static int refill_cursor(struct points_cursor *c, struct err *err)
{
	struct db *d;
	int rc = readers_take_permitted(c->s, &d, err);

	if (rc)
		return rc;
	while (!rc && c->at == c->buffer.count && !c->at_end) {
		if (c->run_loaded && c->series_done)
			next_cursor_series(c);
		if (c->run_loaded && c->series_at == c->run.count) {
			c->run_loaded = false;
			c->run_at++;
		}
		if (!c->run_loaded) {
			rc = next_cursor_run(c, d, err);
			c->at_end = !rc;
			rc = rc > 0 ? 0 : rc;
			continue;
		}
		rc = load_cursor_series(c, d, err);
	}
	readers_give(c->s, d);
	return rc;
}

static void give_points_row(struct points_cursor *c, struct points_row *row)
{
	const struct series_select_series *s = &c->run.series[c->series_at];
	const struct sum_point *p = &c->buffer.points[c->at++];

	if (p->step != c->step) {
		c->step = p->step;
		c->skip = 0;
	}
	c->skip++;
	*row = (struct points_row){ .run = c->run.uuid, .run_name = c->run.name, .key = s->key, .rank = s->rank,
				    .segment = s->segment, .step = p->step, .wall_time = p->time, .value = p->value };
}

int points_next(struct points_cursor *c, struct points_row *rows, size_t max, size_t *ret_count, struct err *err)
{
	size_t n = 0;
	int rc = 0;

	while (n < max && !c->at_end && !rc) {
		if (c->at == c->buffer.count)
			rc = refill_cursor(c, err);
		while (!rc && n < max && c->at < c->buffer.count)
			give_points_row(c, &rows[n++]);
	}
	if (!rc)
		*ret_count = n;
	return rc;
}

bool points_token(struct points_cursor *c, char *ret, size_t ret_bytes)
{
	struct err err = ERR_INIT;

	if (c->at == c->buffer.count && !c->at_end && refill_cursor(c, &err))
		return false;
	if (c->at_end)
		return false;
	return snprintf(ret, ret_bytes, "s%" PRId64 ".%" PRId64 ".%" PRIu64, c->run.series[c->series_at].id, c->step,
			c->skip) < (int)ret_bytes;
}

static int fail_bad_token(struct err *err)
{
	err_set(err, ERR_USAGE, "page_token: not a token of this selection");
	return err_field(err, "page_token");
}

/* Moves to the run and series of the token. */
static int seek_cursor_series(struct points_cursor *c, struct db *d, int64_t series, struct err *err)
{
	char uuid[40] = "";
	struct db_rows *q;
	size_t i;
	int rc = db_start(d, &q, DB_run_of_series, err, "i", series);

	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(uuid, sizeof(uuid), "%s", db_str(q, COL_run_of_series_uuid));
		db_stop(q);
	}
	if (rc < 0)
		return rc;
	while (c->run_at < c->sel.run_count && strcmp(c->sel.runs[c->run_at], uuid))
		c->run_at++;
	rc = next_cursor_run(c, d, err);
	if (rc <= 0 || strcmp(c->run.uuid, uuid))
		return rc < 0 ? rc : fail_bad_token(err);
	for (i = 0; i < c->run.count && c->run.series[i].id != series; i++)
		;
	if (i == c->run.count)
		return fail_bad_token(err);
	c->series_at = i;
	return 0;
}

static int open_at_token(struct points_cursor *c, const char *token, struct err *err)
{
	int64_t series, step;
	uint64_t skip;
	char rest;
	struct db *d;
	int rc;

	if (sscanf(token, "s%" SCNd64 ".%" SCNd64 ".%" SCNu64 "%c", &series, &step, &skip, &rest) != 3)
		return fail_bad_token(err);
	rc = readers_take_permitted(c->s, &d, err);
	if (rc)
		return rc;
	rc = seek_cursor_series(c, d, series, err);
	readers_give(c->s, d);
	c->step = step;
	c->skip = skip;
	return rc;
}

int points_open(struct points_cursor **ret, struct store *s, const struct points_sel *sel, const char *token,
		struct err *err)
{
	struct points_cursor *c = mem_zalloc(sizeof(*c));
	int rc = 0;

	c->s = s;
	c->sel = *sel;
	c->step = sel->from_step;
	c->texts = map_new(1);
	c->sel_arena = arena_new();
	c->sel.runs = copy_list(c->sel_arena, sel->runs, sel->run_count);
	c->sel.keys = sel->keys ? copy_list(c->sel_arena, sel->keys, sel->key_count) : NULL;
	if (token && *token)
		rc = open_at_token(c, token, err);
	if (rc) {
		points_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void points_close(struct points_cursor *c)
{
	if (!c)
		return;
	map_free(c->texts);
	arena_free(c->run_arena);
	tail_done(&c->buffer);
	arena_free(c->sel_arena);
	free(c);
}
