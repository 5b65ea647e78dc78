/* SPDX-License-Identifier: Apache-2.0 */
/* derived.c: evaluates a formula over the series of a run: walks them in parallel by step and puts the results into
 * buckets. */
#include "tracker/mem/mem.h"
#include "web/api/native/formula/derived.h"

#include <stdlib.h>
#include <string.h>

#define DERIVED_BATCH 512
#define DERIVED_CELLS_MAX 4000000u /* runs * buckets of one reply */

/* One series, read in batches. */
struct formula_series {
	struct points_cursor *cursor;
	struct points_row rows[DERIVED_BATCH];
	size_t at, count;
};

/* Evaluation of the formula for one run after another. */
struct formula_walk {
	struct call *c;
	const struct points_chart_opts *o;
	const struct formula *f;
	const struct formula_name *names;
	size_t name_count;
	struct formula_series *parts[FORMULA_NAMES_MAX]; /* NULL for a param */
	double values[FORMULA_NAMES_MAX];
	double shift, scale; /* x = (number - shift) / scale */
	struct points_chart *chart;
	struct points_bucket *cells;
	struct err err;
};

static void add_to_bucket(struct points_bucket *b, struct points_at p)
{
	bool first = b->count++ == b->nonfinite;

	if (!isfinite(p.value)) {
		if (!b->nonfinite++ || p.x < b->first_nonfinite_x)
			b->first_nonfinite_x = p.x;
		return;
	}
	if (first || p.x < b->first.x)
		b->first = p;
	if (first || p.x >= b->last.x)
		b->last = p;
	if (first || p.value < b->min.value)
		b->min = p;
	if (first || p.value > b->max.value)
		b->max = p;
	b->sum += p.value;
}

/* The current row of the series; NULL at its end. */
static const struct points_row *current_series_row(struct formula_walk *w, struct formula_series *p)
{
	if (p->at == p->count) {
		p->at = p->count = 0;
		if (points_next(p->cursor, p->rows, DERIVED_BATCH, &p->count, &w->err))
			return NULL;
	}
	return p->at < p->count ? &p->rows[p->at] : NULL;
}

/* Moves to the first row at or after a step. Returns false at the end, else true with its step. */
static bool advance_to_step(struct formula_walk *w, struct formula_series *p, int64_t step, int64_t *ret)
{
	const struct points_row *r = current_series_row(w, p);

	while (r && r->step < step) {
		p->at++;
		r = current_series_row(w, p);
	}
	if (r)
		*ret = r->step;
	return r != NULL;
}

/* Consumes all rows of a step: returns the value of the last one and raises *time to the latest time. */
static double read_step_value(struct formula_walk *w, struct formula_series *p, int64_t step, double *time)
{
	const struct points_row *r;
	double v = NAN;

	for (r = current_series_row(w, p); r && r->step == step; r = current_series_row(w, p)) {
		v = r->value;
		*time = fmax(*time, r->wall_time);
		p->at++;
	}
	return v;
}

/* Moves *step to the next step that all series have. Returns false at the end. */
static bool find_common_step(struct formula_walk *w, int64_t *step)
{
	bool moved = true;
	size_t i;

	while (moved) {
		moved = false;
		for (i = 0; i < w->name_count; i++) {
			int64_t there = *step;

			if (w->parts[i] && !advance_to_step(w, w->parts[i], *step, &there))
				return false;
			moved = moved || there > *step;
			*step = there;
		}
	}
	return true;
}

static void add_formula_value(struct formula_walk *w, int64_t step, double time)
{
	bool by_time = w->o->x == POINTS_X_TIME || w->o->x == POINTS_X_ELAPSED;
	double x = ((by_time ? time : (double)step) - w->shift) / w->scale;
	const struct points_chart *chart = w->chart;

	if (!(x >= chart->from && x <= chart->to))
		return;
	add_to_bucket(&w->cells[points_bucket_of(chart, x)], (struct points_at){ x, formula_value(w->f, w->values) });
}

static void walk_common_steps(struct formula_walk *w)
{
	int64_t step = INT64_MIN;
	size_t i;

	while (find_common_step(w, &step)) {
		double time = -INFINITY;

		for (i = 0; i < w->name_count; i++)
			if (w->parts[i])
				w->values[i] = read_step_value(w, w->parts[i], step, &time);
		add_formula_value(w, step, time);
		if (step++ == INT64_MAX)
			return;
	}
}

/* Reads the run's params as numbers. Returns false if one is missing. */
static bool read_formula_params(struct formula_walk *w, const struct query_run *run)
{
	size_t i, k;

	for (i = 0; i < w->name_count; i++) {
		char *end;

		if (!w->names[i].param)
			continue;
		for (k = 0; k < run->param_count && strcmp(run->params[k].key, w->names[i].text); k++)
			;
		if (k == run->param_count)
			return false;
		w->values[i] = strtod(run->params[k].value, &end);
		if (end == run->params[k].value || *end)
			w->values[i] = NAN;
	}
	return true;
}

/* Sets how x is computed. On the epoch axis a run without steps_per_epoch is shown by steps. */
static void set_formula_axis(struct formula_walk *w, const struct query_run *run)
{
	bool epochs = true;
	size_t i;

	w->shift = w->o->x == POINTS_X_ELAPSED && run->start_ms != INT64_MIN ? (double)run->start_ms / 1e3 : 0;
	w->scale = 1;
	for (i = 0; i < w->name_count; i++)
		epochs = epochs && (w->names[i].param || !strncmp(w->names[i].text, "epoch/", 6));
	for (i = 0; w->o->x == POINTS_X_EPOCH && !epochs && i < run->param_count; i++)
		if (!strcmp(run->params[i].key, "steps_per_epoch") && strtod(run->params[i].value, NULL) > 0)
			w->scale = strtod(run->params[i].value, NULL);
}

static int open_formula_series(struct formula_walk *w, const char *const *run)
{
	size_t i;

	for (i = 0; i < w->name_count; i++) {
		struct points_sel sel = { .runs = run, .run_count = 1, .keys = &w->names[i].text, .key_count = 1,
					  .rank = w->o->sel.rank, .from_step = INT64_MIN, .to_step = INT64_MAX };

		if (w->names[i].param)
			continue;
		w->parts[i] = mem_zalloc(sizeof(*w->parts[i]));
		if (points_open(&w->parts[i]->cursor, w->c->api->store, &sel, NULL, &w->err))
			return w->err.code;
	}
	return 0;
}

static void close_formula_series(struct formula_walk *w)
{
	size_t i;

	for (i = 0; i < w->name_count; i++) {
		if (w->parts[i])
			points_close(w->parts[i]->cursor);
		free(w->parts[i]);
		w->parts[i] = NULL;
	}
}

/* Makes a line of the chart from the non-empty buckets, if any. */
static void add_formula_line(struct formula_walk *w, const struct query_run *run, const char *key)
{
	struct points_line *l = &w->chart->lines[w->chart->line_count];
	uint32_t i, n = 0;

	*l = (struct points_line){ .run = run->id, .run_name = run->name, .key = key, .rank = w->o->sel.rank };
	for (i = 0; i < w->chart->bucket_count; i++)
		l->bucket_count += w->cells[i].count > 0;
	l->buckets = arena_array(w->c->arena, l->bucket_count + 1, sizeof(*l->buckets));
	for (i = 0; i < w->chart->bucket_count; i++) {
		struct points_bucket *b = &w->cells[i];

		if (!b->count)
			continue;
		if (b->count == b->nonfinite)
			b->first = b->min = b->max = b->last = (struct points_at){ NAN, NAN };
		b->index = i;
		l->point_count += b->count;
		l->buckets[n++] = *b;
	}
	w->chart->line_count += n > 0;
}

static int evaluate_run(struct formula_walk *w, const struct query_run *run, const char *key)
{
	int rc;

	if (!read_formula_params(w, run))
		return 0;
	set_formula_axis(w, run);
	memset(w->cells, 0, w->chart->bucket_count * sizeof(*w->cells));
	rc = open_formula_series(w, &run->id);
	if (!rc) {
		walk_common_steps(w);
		rc = w->err.code;
	}
	close_formula_series(w);
	if (!rc)
		add_formula_line(w, run, key);
	return rc;
}

/* Finds the range of x over all series and divides it into buckets. */
static int find_bucket_edges(struct formula_walk *w)
{
	const char **keys = arena_array(w->c->arena, w->name_count + 1, sizeof(*keys));
	struct points_chart_opts o = *w->o;
	size_t i, n = 0;
	int rc;

	for (i = 0; i < w->name_count; i++)
		if (!w->names[i].param)
			keys[n++] = w->names[i].text;
	if (!n) {
		err_set(&w->err, ERR_USAGE, "formula: contains no metric");
		return err_field(&w->err, "formula");
	}
	o.sel.keys = keys;
	o.sel.key_count = n;
	o.buckets = 1;
	rc = points_chart(w->c->api->store, &o, w->c->arena, w->chart, &w->err);
	if (rc)
		return rc;
	points_spread(w->chart, w->o->buckets);
	return 0;
}

static const struct query_run *find_formula_run(const struct query_runs *runs, const char *id)
{
	size_t i;

	for (i = 0; i < runs->count; i++)
		if (!strcmp(runs->items[i].id, id))
			return &runs->items[i];
	return NULL;
}

/* Evaluates the formula for every run of the selection. */
static int fill_formula_chart(struct formula_walk *w, const char *key)
{
	const struct points_sel *sel = &w->o->sel;
	struct query_runs_opts q = { .ids = sel->runs, .id_count = sel->run_count, .with_deleted = true,
				     .limit = sel->run_count, .parts = QUERY_PARAMS };
	struct query_runs runs;
	size_t i;
	int rc = find_bucket_edges(w);

	if (!rc && (uint64_t)sel->run_count * w->o->buckets > DERIVED_CELLS_MAX)
		rc = err_set(&w->err, ERR_LIMIT, "%zu runs of %u buckets are too many for one reply", sel->run_count,
			     (unsigned)w->o->buckets);
	if (!rc)
		rc = query_runs(w->c->api->store, &q, w->c->arena, &runs, &w->err);
	if (rc)
		return rc;
	w->chart->lines = arena_array(w->c->arena, sel->run_count + 1, sizeof(*w->chart->lines));
	w->chart->line_count = 0;
	w->cells = mem_array(w->o->buckets, sizeof(*w->cells));
	for (i = 0; i < sel->run_count && !rc; i++) {
		const struct query_run *run = find_formula_run(&runs, sel->runs[i]);

		rc = run ? evaluate_run(w, run, key) : 0;
	}
	return rc;
}

bool derived_chart(struct call *c, const char *formula, struct points_chart_opts *o, struct points_chart *ret)
{
	struct formula_walk w = { .c = c, .o = o, .chart = ret, .err = ERR_INIT };
	struct formula *f;
	int rc = formula_parse(&f, formula, c->arena, &w.err);

	if (!rc) {
		w.f = f;
		w.names = formula_names(f, &w.name_count);
		rc = fill_formula_chart(&w, formula);
	}
	free(w.cells);
	if (rc)
		call_fail_err(c, "formula", &w.err);
	return !rc;
}
