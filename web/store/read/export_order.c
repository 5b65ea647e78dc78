/* SPDX-License-Identifier: Apache-2.0 */
/* export_order.c: one cursor per series. Folded points are read from chunks window by window, the others are copied at
 * the start. Folding only appends, so a position in a series stays valid while points are folded. */
#include "tracker/mem/mem.h"
#include "web/store/read/export_order.h"

#include <stdlib.h>

#include "web/store/points/chunks.h"
#include "web/store/points/order.h"
#include "web/store/points/scan.h"

#define WINDOW_POINTS 512
#define TAIL_POINTS_MAX ((uint64_t)8 << 20)

struct arrival_line {
	int64_t id; /* first member, for list_find */
	const char *key;
	uint64_t folded, taken; /* points in chunks; points copied to windows */
	int64_t chunk;		/* number of the chunk with the next point, */
	uint64_t chunk_from;	/* and the position of its first point */
	struct sum_point *window;
	size_t count, at;
	struct point_tail tail;
	size_t tail_at;
};

struct export_order {
	struct store *s;
	struct arena *arena;
	int64_t run_id;
	struct arrival_line *lines; /* by id */
	size_t line_count;
	uint64_t tail_points;
	int64_t order_at, order_last; /* rows of the table arrival: the current one, the newest */
	struct series_order *order;
	bool merging;
	uint32_t *heap; /* lines with points left; the earliest is at the top */
	size_t heap_count;
};

/* --- one series --------------------------------------------------------------------------------------------- */

/* Copies points of the chunk until the window is full. from: position of its first point. */
static int take_groups(struct arrival_line *l, const struct chunk *c, uint64_t from)
{
	struct sum_point room[CHUNK_GROUP];
	struct chunk_group head;
	size_t skip, n;
	unsigned g;

	for (g = 0; g < c->groups && l->count < WINDOW_POINTS && l->taken < l->folded; g++, from += head.points) {
		chunk_group_get(c, g, &head);
		if (from + head.points <= l->taken)
			continue;
		if (chunk_group_points(c, g, room))
			return ERR_CORRUPT;
		skip = (size_t)(l->taken - from);
		n = head.points - skip;
		if (n > WINDOW_POINTS - l->count)
			n = WINDOW_POINTS - l->count;
		if (n > l->folded - l->taken)
			n = (size_t)(l->folded - l->taken);
		memcpy(l->window + l->count, room + skip, n * sizeof(room[0]));
		l->count += n;
		l->taken += n;
		if (n < head.points - skip)
			break;
	}
	return 0;
}

static int take_walked(struct arrival_line *l, struct chunks *w, struct err *err)
{
	uint64_t from = l->chunk_from;
	struct chunk c;
	int rc = 0;

	while (!rc && l->count < WINDOW_POINTS && l->taken < l->folded && (rc = chunks_next(w, err)) > 0) {
		if (chunk_open(&c, w->data, w->bytes) || take_groups(l, &c, from))
			return scan_damaged(err, "chunk", w->id);
		from += c.points;
		rc = 0;
	}
	return rc;
}

/* Reads the chunk of the next point. Pieces follow the full chunks, and folding may merge them between calls, so all
 * pieces are read from the first. */
static int take_chunks(struct arrival_line *l, struct db *d, struct err *err)
{
	bool full = (uint64_t)l->chunk < l->folded / CHUNK_POINTS;
	uint64_t before = l->taken;
	struct chunks w;
	struct chunks_range range = { CHUNKS_DATA, l->id, l->chunk, full ? l->chunk : CHUNKS_LAST };
	int rc = chunks_start(&w, d, &range, err);

	if (rc)
		return rc;
	rc = take_walked(l, &w, err);
	chunks_stop(&w, rc, err);
	if (!rc && l->taken == before)
		return err_set(err, ERR_GONE,
			       "points of the run are missing: the run was just removed for good, or the "
			       "store is damaged (dptrack doctor)");
	if (full && l->taken >= l->chunk_from + CHUNK_POINTS) {
		l->chunk_from += CHUNK_POINTS;
		l->chunk++;
	}
	return rc;
}

/* Reads the next window of folded points of a line. */
static int fill_window(struct export_order *a, struct arrival_line *l, struct db *given, struct err *err)
{
	struct db *d = given;
	int rc = given ? 0 : readers_take_permitted(a->s, &d, err);

	if (rc)
		return rc;
	if (!l->window)
		l->window =
			mem_array(l->folded < WINDOW_POINTS ? (size_t)l->folded : WINDOW_POINTS, sizeof(*l->window));
	l->count = l->at = 0;
	while (!rc && l->count < WINDOW_POINTS && l->taken < l->folded)
		rc = take_chunks(l, d, err);
	if (!given)
		readers_give(a->s, d);
	if (!rc && !l->count)
		rc = scan_damaged(err, "series", l->id);
	return rc;
}

/* Finds the next point without advancing: 1 found, 0 at the end, negative: failed. d NULL: takes a reader if needed. */
static int peek_arrival_line(struct export_order *a, struct arrival_line *l, struct db *d, const struct sum_point **ret,
			     struct err *err)
{
	int rc = 0;

	if (l->at == l->count && l->taken < l->folded)
		rc = fill_window(a, l, d, err);
	if (rc)
		return rc;
	if (l->at < l->count)
		*ret = &l->window[l->at];
	else if (l->tail_at < l->tail.count)
		*ret = &l->tail.points[l->tail_at];
	else
		return 0;
	return 1;
}

static void step_arrival_line(struct arrival_line *l)
{
	if (l->at < l->count)
		l->at++;
	else
		l->tail_at++;
}

/* --- by time ---------------------------------------------------------------------------------------------- */

static const struct sum_point *arrival_line_head(const struct arrival_line *l)
{
	return l->at < l->count ? &l->window[l->at] : &l->tail.points[l->tail_at];
}

/* NaN times come first; equal times in the order of the series. */
static bool arrives_before(const struct export_order *a, uint32_t x, uint32_t y)
{
	double tx = arrival_line_head(&a->lines[x])->time, ty = arrival_line_head(&a->lines[y])->time;

	if (tx != tx || ty != ty)
		return tx != tx && (ty == ty || x < y);
	return tx < ty || (tx == ty && x < y);
}

static void sift_arrival_heap(struct export_order *a, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1;
		uint32_t line;

		if (child >= a->heap_count)
			return;
		if (child + 1 < a->heap_count && arrives_before(a, a->heap[child + 1], a->heap[child]))
			child++;
		if (!arrives_before(a, a->heap[child], a->heap[i]))
			return;
		line = a->heap[i];
		a->heap[i] = a->heap[child];
		a->heap[child] = line;
		i = child;
	}
}

static int begin_merge(struct export_order *a, struct err *err)
{
	const struct sum_point *p;
	struct db *d;
	size_t i;
	int rc = readers_take_permitted(a->s, &d, err);

	a->merging = true;
	for (i = 0; !rc && i < a->line_count; i++) {
		rc = peek_arrival_line(a, &a->lines[i], d, &p, err);
		if (rc > 0) {
			a->heap[a->heap_count++] = (uint32_t)i;
			rc = 0;
		}
	}
	readers_give(a->s, d);
	for (i = a->heap_count / 2; i-- > 0;)
		sift_arrival_heap(a, i);
	return rc;
}

static void give_arrival_row(struct arrival_line *l, const struct sum_point *p, struct export_order_row *row)
{
	*row = (struct export_order_row){ l->key, p->step, p->time, p->value };
	step_arrival_line(l);
}

static int next_row_by_time(struct export_order *a, struct export_order_row *row, struct err *err)
{
	const struct sum_point *p;
	struct arrival_line *l;
	int rc = a->merging ? 0 : begin_merge(a, err);

	if (rc || !a->heap_count)
		return rc;
	l = &a->lines[a->heap[0]];
	give_arrival_row(l, arrival_line_head(l), row);
	rc = peek_arrival_line(a, l, NULL, &p, err);
	if (rc < 0)
		return rc;
	if (!rc)
		a->heap[0] = a->heap[--a->heap_count];
	sift_arrival_heap(a, 0);
	return 1;
}

/* --- by the order of an imported file ----------------------------------------------------------------------- */

static struct arrival_line *find_arrival_line(const struct export_order *a, int64_t id)
{
	size_t at = list_find(a->lines, a->line_count, sizeof(*a->lines), id);

	return at < a->line_count && a->lines[at].id == id ? &a->lines[at] : NULL;
}

/* Opens the next row of the table arrival: 1, 0 no more rows, negative: failed. */
static int next_order(struct export_order *a, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(a->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_arrival_next, err, "iii", a->run_id, a->order_at, a->order_last);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		a->order_at = db_i64(q, COL_arrival_next_id);
		rc = order_open(&a->order, db_blob(q, COL_arrival_next_data), db_bytes(q, COL_arrival_next_data));
		if (rc)
			rc = scan_damaged(err, "arrival", a->order_at);
		else
			rc = 1;
		db_stop(q);
	}
	readers_give(a->s, d);
	return rc;
}

/* 1: a row; 0: the rest has no known order; negative: failed. */
static int next_row_by_order(struct export_order *a, struct export_order_row *row, struct err *err)
{
	const struct sum_point *p;
	struct arrival_line *l;
	int64_t id;
	int rc;

	for (;;) {
		if (!a->order && (rc = next_order(a, err)) <= 0)
			return rc;
		rc = order_next(a->order, &id);
		if (rc < 0)
			return scan_damaged(err, "arrival", a->order_at);
		if (!rc) {
			order_close(a->order);
			a->order = NULL;
			continue;
		}
		l = find_arrival_line(a, id); /* NULL: of another part */
		rc = l ? peek_arrival_line(a, l, NULL, &p, err) : 0;
		if (rc < 0)
			return rc;
		if (rc) {
			give_arrival_row(l, p, row);
			return 1;
		}
	}
}

int export_order_next(struct export_order *a, struct export_order_row *rows, size_t max, size_t *ret_count,
		      struct err *err)
{
	size_t n = 0;
	int rc = 1;

	while (n < max && rc > 0) {
		rc = a->merging ? 0 : next_row_by_order(a, &rows[n], err);
		if (!rc)
			rc = next_row_by_time(a, &rows[n], err);
		n += rc > 0;
	}
	if (rc >= 0)
		*ret_count = n;
	return rc < 0 ? rc : 0;
}

/* --- open and close --------------------------------------------------------------------------------------- */

static int take_arrival_tail(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct export_order *a = arg;

	a->tail_points += n;
	if (a->tail_points > TAIL_POINTS_MAX)
		return err_set(err, ERR_BUSY, "the run is written faster than it is folded: try again in a minute");
	tail_add(&a->lines[at].tail, points, n);
	return 0;
}

static int load_arrival_lines(struct export_order *a, struct db *d, struct export_order_part part, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_series_of_part, err, "iii", a->run_id, (int64_t)part.rank, (int64_t)part.segment);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a->arena, &a->lines, &a->line_count,
			  (struct arrival_line){ .id = db_i64(q, COL_series_of_part_id),
						 .key = db_text(a->arena, q, COL_series_of_part_name),
						 .folded = (uint64_t)db_i64(q, COL_series_of_part_count) });
	return rc;
}

static int load_arrival(struct export_order *a, struct db *d, const char *run, struct export_order_part part,
			struct err *err)
{
	int64_t *ids;
	size_t i;
	int rc = db_int(d, &a->run_id, DB_run_head, err, "t", run);

	if (rc <= 0)
		return rc ? rc : readers_missing(d, run, err);
	rc = load_arrival_lines(a, d, part, err);
	if (rc)
		return rc;
	ids = arena_array(a->arena, a->line_count + 1, sizeof(*ids));
	a->heap = arena_array(a->arena, a->line_count + 1, sizeof(*a->heap));
	for (i = 0; i < a->line_count; i++)
		ids[i] = a->lines[i].id;
	rc = scan_log(d, &(struct series_scan){ a->run_id, ids, a->line_count, take_arrival_tail, a }, err);
	if (!rc)
		rc = db_int(d, &a->order_last, DB_arrival_last, err, "i", a->run_id);
	return rc < 0 ? rc : 0;
}

int export_order_open(struct export_order **ret, struct store *s, const char *run, struct export_order_part part,
		      struct err *err)
{
	struct export_order *a = mem_zalloc(sizeof(*a));
	struct db *d;
	int rc;

	a->s = s;
	a->arena = arena_new();
	rc = readers_take_permitted(s, &d, err);
	if (!rc) {
		rc = load_arrival(a, d, run, part, err);
		readers_give(s, d);
	}
	if (rc) {
		export_order_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

void export_order_close(struct export_order *a)
{
	size_t i;

	if (!a)
		return;
	for (i = 0; i < a->line_count; i++) {
		free(a->lines[i].window);
		tail_done(&a->lines[i].tail);
	}
	order_close(a->order);
	arena_free(a->arena);
	free(a);
}

int export_order_parts(struct store *s, const char *run, struct arena *a, struct export_order_parts *ret,
		       struct err *err)
{
	struct export_order_parts list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_parts_of_run, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list.items, &list.count,
			  (struct export_order_part){ db_i32(q, COL_parts_of_run_rank),
						      db_i32(q, COL_parts_of_run_segment) });
	readers_give(s, d);
	if (!rc)
		*ret = list;
	return rc;
}
