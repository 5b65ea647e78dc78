/* SPDX-License-Identifier: Apache-2.0 */
/* chart.c: M4 buckets (first, min, max, last per bucket). A first pass finds the edges, from summaries where
 * possible; a second sorts the points into buckets. Both use one snapshot, so the lines of all runs are consistent. */
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/points/scan.h"
#include "web/store/read/read_inside.h"

#define CELLS_MAX 4000000u /* lines * buckets of one answer */
#define BUCKETS_MAX 10000u

struct chart_cell {
	uint32_t count, nonfinite, finite;
	struct points_at first, min, max, last;
	double sum, first_nonfinite_x;
};

/* One line: the range from..to of a run's picked series. */
struct chart_line {
	const struct series_select_run *run;
	size_t from, to;
};

struct chart {
	const struct points_chart_opts *o;
	struct db *d;
	struct outlines *outlines;
	uint64_t outlines_generation; /* of the snapshot of d */
	struct arena *a;
	struct series_select_run *runs;
	struct point_tail **tails; /* points of each run's series that are not folded yet */
	size_t run_count;
	struct chart_line *lines;
	size_t line_count, line_cap;
	struct points_chart grid;
	struct chart_cell *cells;
	struct err *err;
};

/* x = (number - shift) / scale, where number is a step or a time. */
struct chart_axis {
	bool time;
	double shift, scale;
};

/* State of the pass over the points of one line. */
struct chart_sweep {
	struct chart *c;
	const struct chart_line *line;
	struct chart_axis axis;
	int64_t hide; /* hidden steps of the current series */
	uint64_t inside;
	double low, high;
};

static struct chart_axis line_axis(const struct chart *c, const struct chart_line *l)
{
	struct chart_axis x = { false, 0, 1 };

	if (c->o->x == POINTS_X_TIME || c->o->x == POINTS_X_ELAPSED)
		x.time = true;
	if (c->o->x == POINTS_X_ELAPSED && isfinite(l->run->start_s))
		x.shift = l->run->start_s;
	if (c->o->x == POINTS_X_EPOCH && !hide_counts_epochs(l->run->series[l->from].key))
		x.scale = l->run->steps_per_epoch;
	return x;
}

static double axis_place(const struct chart_axis *x, double number)
{
	return (number - x->shift) / x->scale;
}

static double point_x(const struct chart_axis *x, const struct sum_point *p)
{
	return axis_place(x, x->time ? p->time : (double)p->step);
}

static void note_edge(struct chart_sweep *f, double x)
{
	if (f->c->grid.log && !(x > 0))
		return;
	f->low = fmin(f->low, x);
	f->high = fmax(f->high, x);
}

static int edge_points(void *arg, const struct sum_point *points, size_t n, struct err *err)
{
	struct chart_sweep *f = arg;
	size_t i;

	(void)err;
	for (i = 0; i < n; i++)
		if (!hide_has(f->hide, points[i].step))
			note_edge(f, point_x(&f->axis, &points[i]));
	return 0;
}

/* Returns true if the axis can show the low end (a logarithmic axis cannot show x <= 0). */
static bool begins_on(const struct chart_sweep *f, const struct sum_point *low)
{
	return !f->c->grid.log || point_x(&f->axis, low) > 0;
}

/* A part without hidden points gives its edges by its ends; only a partly hidden one is read. */
static bool edge_ends(void *arg, const struct sum_point *low, const struct sum_point *high)
{
	struct chart_sweep *f = arg;

	if (hide_has(f->hide, high->step))
		return !hide_has(f->hide, low->step);
	if (!begins_on(f, low))
		return true;
	note_edge(f, point_x(&f->axis, low));
	note_edge(f, point_x(&f->axis, high));
	return false;
}

static int edge_outline(void *arg, const struct outline *o, struct scan_group_source *from, struct err *err)
{
	struct chart_sweep *f = arg;
	struct sum_point p[CHUNK_GROUP];
	unsigned i;
	int rc = 0;

	for (i = 0; i < o->groups && !rc; i++) {
		if (hide_has(f->hide, o->part[i].min_step))
			continue;
		rc = scan_group(from, o, i, p, err);
		if (!rc)
			rc = edge_points(f, p, o->part[i].points, err);
	}
	return rc;
}

static int scan_parts(struct chart_sweep *f, const struct series_select_series *s, struct scan_parts o)
{
	struct chart *c = f->c;

	o.arg = f;
	o.outlines = c->outlines;
	o.outlines_generation = c->outlines_generation;
	return scan_series_parts(c->d, s->id, s->folded.count, &o, c->err);
}

static int edge_chunks(struct chart_sweep *f, const struct series_select_series *s)
{
	/* The summary has the ends by step. */
	if (!f->axis.time && s->folded.count && !hide_has(s->hide, s->folded.last.step) &&
	    begins_on(f, &s->folded.first)) {
		edge_ends(f, &s->folded.first, &s->folded.last);
		return 0;
	}
	return scan_parts(f, s,
			  (struct scan_parts){ .want = edge_ends, .outline = edge_outline, .points = edge_points });
}

static const struct point_tail *series_tail(const struct chart *c, const struct chart_line *l, size_t at)
{
	return &c->tails[l->run - c->runs][at];
}

static int line_edges(struct chart *c, const struct chart_line *l, double *low, double *high)
{
	struct chart_sweep f = { .c = c, .line = l, .axis = line_axis(c, l), .low = NAN, .high = NAN };
	size_t i;
	int rc = 0;

	for (i = l->from; i < l->to && !rc; i++) {
		const struct series_select_series *s = &l->run->series[i];

		f.hide = s->hide;
		rc = edge_chunks(&f, s);
		if (!rc)
			rc = edge_points(&f, series_tail(c, l, i)->points, series_tail(c, l, i)->count, c->err);
	}
	*low = fmin(*low, f.low);
	*high = fmax(*high, f.high);
	return rc;
}

static int find_chart_edges(struct chart *c)
{
	double low = NAN, high = NAN;
	size_t i;
	int rc = 0;

	c->grid.log = c->o->log;
	c->grid.from = c->o->log && !(c->o->from > 0) ? NAN : c->o->from;
	c->grid.to = c->o->log && !(c->o->to > 0) ? NAN : c->o->to;
	if (isnan(c->grid.from) || isnan(c->grid.to))
		for (i = 0; i < c->line_count && !rc; i++)
			rc = line_edges(c, &c->lines[i], &low, &high);
	if (isnan(c->grid.from))
		c->grid.from = low;
	if (isnan(c->grid.to))
		c->grid.to = high;
	points_spread(&c->grid, c->o->buckets);
	return rc;
}

static void put_cell_value(struct chart_cell *b, double x, double v)
{
	b->count++;
	if (!isfinite(v)) {
		if (!b->nonfinite || x < b->first_nonfinite_x)
			b->first_nonfinite_x = x;
		b->nonfinite++;
		return;
	}
	if (!b->finite || x < b->first.x)
		b->first = (struct points_at){ x, v };
	if (!b->finite || x >= b->last.x)
		b->last = (struct points_at){ x, v };
	if (!b->finite || v < b->min.value || (v == b->min.value && x < b->min.x))
		b->min = (struct points_at){ x, v };
	if (!b->finite || v > b->max.value || (v == b->max.value && x < b->max.x))
		b->max = (struct points_at){ x, v };
	b->sum += v;
	b->finite++;
}

void points_spread(struct points_chart *c, uint32_t buckets)
{
	c->bucket_count = buckets;
	c->begin = points_place(c, c->from);
	c->width = (points_place(c, c->to) - c->begin) / buckets;
	if (!(c->width > 0) || !isfinite(c->width))
		c->width = 0;
}

double points_edge(const struct points_chart *c, uint32_t i)
{
	if (i == c->bucket_count)
		return c->to;
	return c->log ? c->from * exp(i * c->width) : c->from + i * c->width;
}

static int put_chart_points(void *arg, const struct sum_point *points, size_t n, struct err *err)
{
	struct chart_sweep *f = arg;
	struct chart *c = f->c;
	size_t i;
	double x;

	(void)err;
	for (i = 0; i < n; i++) {
		x = point_x(&f->axis, &points[i]);
		if (hide_has(f->hide, points[i].step) || !(x >= c->grid.from && x <= c->grid.to))
			continue;
		put_cell_value(&c->cells[points_bucket_of(&c->grid, x)], x, points[i].value);
		f->inside++;
	}
	return 0;
}

/* Adds a part by its summary if all its points are in one bucket. */
static bool put_outline_part(struct chart_sweep *f, const struct outline_part *g)
{
	const struct chart *c = f->c;
	const struct outline_axis *a = f->axis.time ? &g->by_time : &g->by_step;
	double low = axis_place(&f->axis, a->low), high = axis_place(&f->axis, a->high), at;
	struct chart_cell *b;
	size_t cell;

	if (g->nonfinite || hide_has(f->hide, g->max_step) || !(low >= c->grid.from && high <= c->grid.to))
		return false;
	cell = points_bucket_of(&c->grid, low);
	if (cell != points_bucket_of(&c->grid, high))
		return false;
	b = &f->c->cells[cell];
	if (!b->finite || low < b->first.x)
		b->first = (struct points_at){ low, a->first };
	if (!b->finite || high >= b->last.x)
		b->last = (struct points_at){ high, a->last };
	at = axis_place(&f->axis, a->min_at);
	if (!b->finite || g->min < b->min.value || (g->min == b->min.value && at < b->min.x))
		b->min = (struct points_at){ at, g->min };
	at = axis_place(&f->axis, a->max_at);
	if (!b->finite || g->max > b->max.value || (g->max == b->max.value && at < b->max.x))
		b->max = (struct points_at){ at, g->max };
	b->count += g->points;
	b->finite += g->points;
	b->sum += g->sum;
	f->inside += g->points;
	return true;
}

/* Returns true if the part certainly has no visible point; NaN times leave that open. */
static bool part_out_of_view(const struct chart_sweep *f, const struct outline_part *g)
{
	const struct outline_axis *a = f->axis.time ? &g->by_time : &g->by_step;
	const struct points_chart *grid = &f->c->grid;

	return !isnan(a->low) &&
	       (axis_place(&f->axis, a->high) < grid->from || axis_place(&f->axis, a->low) > grid->to);
}

static int put_outline(void *arg, const struct outline *o, struct scan_group_source *from, struct err *err)
{
	struct chart_sweep *f = arg;
	struct sum_point p[CHUNK_GROUP];
	unsigned i;
	int rc = 0;

	if (put_outline_part(f, &o->all))
		return 0;
	for (i = 0; i < o->groups && !rc; i++) {
		if (put_outline_part(f, &o->part[i]) || part_out_of_view(f, &o->part[i]))
			continue;
		rc = scan_group(from, o, i, p, err);
		if (!rc)
			rc = put_chart_points(f, p, o->part[i].points, err);
	}
	return rc;
}

/* Returns true if a chunk may have points in view. */
static bool line_is_in_view(void *arg, const struct sum_point *low, const struct sum_point *high)
{
	const struct chart_sweep *f = arg;

	return !(point_x(&f->axis, high) < f->c->grid.from || point_x(&f->axis, low) > f->c->grid.to);
}

static int fill_cells(struct chart *c, const struct chart_line *l, uint64_t *ret_inside)
{
	struct chart_sweep f = { .c = c, .line = l, .axis = line_axis(c, l) };
	size_t i;
	int rc = 0;

	memset(c->cells, 0, c->o->buckets * sizeof(*c->cells));
	for (i = l->from; i < l->to && !rc; i++) {
		const struct series_select_series *s = &l->run->series[i];

		f.hide = s->hide;
		rc = scan_parts(&f, s,
				(struct scan_parts){
					.want = line_is_in_view, .outline = put_outline, .points = put_chart_points });
		if (!rc)
			rc = put_chart_points(&f, series_tail(c, l, i)->points, series_tail(c, l, i)->count, c->err);
	}
	*ret_inside = f.inside;
	return rc;
}

/* Fills the buckets of one line and copies the non-empty ones. */
static int give_chart_line(struct chart *c, const struct chart_line *l, struct points_line *ret)
{
	const struct series_select_series *newest = &l->run->series[l->to - 1];
	static const struct points_at none = { NAN, NAN };
	uint32_t i, n = 0;
	int rc;

	*ret = (struct points_line){ .run = l->run->uuid, .run_name = l->run->name, .key = newest->key,
				     .rank = newest->rank, .segment = newest->segment };
	rc = fill_cells(c, l, &ret->point_count);
	if (rc)
		return rc;
	for (i = 0; i < c->o->buckets; i++)
		n += c->cells[i].count > 0;
	ret->buckets = arena_array(c->a, n ? n : 1, sizeof(*ret->buckets));
	for (i = 0; i < c->o->buckets; i++) {
		const struct chart_cell *b = &c->cells[i];

		if (!b->count)
			continue;
		ret->buckets[ret->bucket_count++] = (struct points_bucket){
			.index = i, .count = b->count, .nonfinite = b->nonfinite, .sum = b->sum,
			.first = b->finite ? b->first : none, .last = b->finite ? b->last : none,
			.min = b->finite ? b->min : none, .max = b->finite ? b->max : none,
			.first_nonfinite_x = b->first_nonfinite_x,
		};
	}
	return 0;
}

static int take_chart_tail(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	(void)err;
	tail_add(((struct point_tail **)arg)[at], points, n);
	return 0;
}

struct id_at {
	int64_t id;
	size_t at;
};

static int compare_chart_lines(const void *x, const void *y)
{
	const struct id_at *a = x, *b = y;

	return (a->id > b->id) - (a->id < b->id);
}

/* Scans the log once for all series of a run. */
static int load_tails(struct chart *c, const struct series_select_run *r)
{
	struct point_tail *tails = arena_array(c->a, r->count + 1, sizeof(*tails));
	struct point_tail **order = arena_array(c->a, r->count + 1, sizeof(*order));
	struct id_at *sorted = arena_array(c->a, r->count + 1, sizeof(*sorted));
	int64_t *ids = arena_array(c->a, r->count + 1, sizeof(*ids));
	size_t i;

	for (i = 0; i < r->count; i++) {
		tails[i] = (struct point_tail){ 0 };
		sorted[i] = (struct id_at){ r->series[i].id, i };
	}
	c->tails[r - c->runs] = tails;
	if (r->count)
		qsort(sorted, r->count, sizeof(*sorted), compare_chart_lines);
	for (i = 0; i < r->count; i++) {
		ids[i] = sorted[i].id;
		order[i] = &tails[sorted[i].at];
	}
	return scan_log(c->d, &(struct series_scan){ r->id, ids, r->count, take_chart_tail, order }, c->err);
}

static void free_tails(struct chart *c)
{
	size_t run, i;

	for (run = 0; run < c->run_count && c->tails; run++)
		for (i = 0; i < c->runs[run].count && c->tails[run]; i++)
			tail_done(&c->tails[run][i]);
}

static void add_lines(struct chart *c, const struct series_select_run *r)
{
	size_t i, from = 0;

	for (i = 1; i <= r->count; i++) {
		if (i < r->count && !c->o->sel.all_segments && r->series[i].rank == r->series[from].rank &&
		    !strcmp(r->series[i].key, r->series[from].key))
			continue;
		mem_push(&c->lines, &c->line_count, &c->line_cap, (struct chart_line){ r, from, i });
		from = i;
	}
}

/* Finds the series of each run and groups them into lines. */
static int choose_lines(struct chart *c)
{
	const struct points_sel *sel = &c->o->sel;
	size_t i;
	int rc = 0;

	c->runs = arena_array(c->a, sel->run_count + 1, sizeof(*c->runs));
	c->tails = mem_array(sel->run_count + 1, sizeof(*c->tails));
	for (i = 0; i < sel->run_count && rc >= 0; i++) {
		const struct series_select_want want = { sel, arena_strdup(c->a, sel->runs[i]) };

		rc = series_select_run(c->d, &want, c->a, &c->runs[c->run_count], c->err);
		if (rc > 0)
			add_lines(c, &c->runs[c->run_count++]);
	}
	if (rc >= 0 && (uint64_t)c->line_count * c->o->buckets > CELLS_MAX)
		rc = err_set(c->err, ERR_LIMIT,
			     "%zu lines of %u buckets are too many for one answer: request fewer runs, keys or "
			     "buckets", c->line_count, (unsigned)c->o->buckets);
	return rc < 0 ? rc : 0;
}

/* Finds lines and edges, then fills the buckets of each line. */
static int draw_chart(struct chart *c, struct points_chart *ret)
{
	struct points_line *lines;
	int64_t rev = 0;
	size_t i;
	int rc = choose_lines(c);

	for (i = 0; i < c->run_count && !rc; i++)
		rc = load_tails(c, &c->runs[i]);
	if (!rc)
		rc = find_chart_edges(c);
	if (!rc && permitted_ids(c->d)) /* a change of other runs must not show */
		for (i = 0; i < c->run_count; i++)
			rev = c->runs[i].rev > rev ? c->runs[i].rev : rev;
	else if (!rc && db_int(c->d, &rev, DB_rev_get, c->err, "") < 0)
		rc = c->err ? c->err->code : ERR_IO;
	if (rc)
		return rc;
	lines = arena_array(c->a, c->line_count ? c->line_count : 1, sizeof(*lines));
	c->cells = mem_array(c->o->buckets, sizeof(*c->cells));
	*ret = c->grid;
	ret->lines = lines;
	ret->rev = (uint64_t)rev;
	for (i = 0; i < c->line_count && !rc; i++) {
		rc = give_chart_line(c, &c->lines[i], &lines[ret->line_count]);
		ret->line_count += !rc && lines[ret->line_count].point_count > 0;
	}
	return rc;
}

static int find_generation(struct chart *c)
{
	struct db_rows *q;
	int rc = db_start(c->d, &q, DB_outlines_of, c->err, "");

	if (rc || (rc = db_next(c->d, q, c->err)) <= 0)
		return rc;
	c->outlines_generation =
		outlines_generation(c->outlines, db_i64(q, COL_outlines_of_rev), db_str(q, COL_outlines_of_rows_of));
	db_stop(q);
	return 0;
}

int points_chart(struct store *s, const struct points_chart_opts *o, struct arena *a, struct points_chart *ret,
		 struct err *err)
{
	struct err local = ERR_INIT;
	struct chart c = { .o = o, .a = a, .err = err ? err : &local };
	struct points_chart chart;
	int rc;

	if (o->buckets < 1 || o->buckets > BUCKETS_MAX)
		return err_set(err, ERR_USAGE, "buckets must be 1 to %u", BUCKETS_MAX);
	rc = readers_take_permitted(s, &c.d, c.err);
	if (rc)
		return rc;
	c.outlines = s->outlines;
	rc = find_generation(&c);
	if (!rc)
		rc = draw_chart(&c, &chart);
	readers_give(s, c.d);
	free_tails(&c);
	free(c.tails);
	free(c.lines);
	free(c.cells);
	if (!rc)
		*ret = chart;
	return rc;
}
