/* SPDX-License-Identifier: Apache-2.0 */
/* timing.c: reads the points of a run as timed steps. */
#include "tracker/mem/mem.h"
#include "web/api/native/insight/timing.h"

#include <stdlib.h>
#include <string.h>

enum { TIMING_ROWS = 512 };

double timing_param(const struct query_run *run, const char *key, double fallback)
{
	const char *text = api_param(run, key);
	double v = text ? strtod(text, NULL) : 0;

	return v > 0 && isfinite(v) ? v : fallback;
}

double timing_batch(const struct query_run *run)
{
	return timing_param(run, "global_batch_size", timing_param(run, "batch_size", 0));
}

/* Number of samples of a step. That of the last step of an epoch is the rest of the epoch's samples; for texts an
 * epoch's rate counts tokens. */
static struct steps_batch read_step_batch(const struct query_run *run)
{
	const struct query_metric *rate = api_metric(run, "epoch/samples_per_s"),
				  *time = api_metric(run, "epoch/seconds");
	struct steps_batch b = { .global = timing_batch(run) > 0 ? timing_batch(run) : 1 };
	double epoch, whole;

	b.steps_per_epoch = (int64_t)timing_param(run, "steps_per_epoch", 0);
	whole = (double)(b.steps_per_epoch - 1) * b.global;
	if (!rate || !time || b.steps_per_epoch < 1)
		return b;
	epoch = round(rate->last * time->last);
	if (epoch > whole + b.global)
		epoch /= timing_param(run, "seq_len", 1);
	if (epoch > whole && epoch <= whole + b.global)
		b.last = epoch - whole;
	return b;
}

/* The series whose points mark the times of steps, for runs without phase/step. */
static const char *choose_mark_series(const struct query_run *run)
{
	const struct query_metric *best = NULL;

	for (size_t i = 0; i < run->metric_count; i++) {
		const struct query_metric *m = &run->metrics[i];

		if (m->last_step == run->last_step && (!best || m->count > best->count))
			best = m;
	}
	return best ? best->key : NULL;
}

/* Adds the points of the selection to s. mark: key of the series that marks steps, or "". */
static int read_timing_points(struct call *c, struct steps *s, const struct points_sel *sel, const char *mark)
{
	struct points_row *rows = arena_array(c->arena, TIMING_ROWS, sizeof(*rows));
	struct points_cursor *cursor;
	struct err err = ERR_INIT;
	size_t n = 1;
	int rc = points_open(&cursor, c->api->store, sel, NULL, &err);

	if (rc)
		return call_fail_err(c, NULL, &err), -1;
	while (n && !(rc = points_next(cursor, rows, TIMING_ROWS, &n, &err))) {
		for (size_t i = 0; i < n; i++) {
			const struct points_row *r = &rows[i];
			int series = steps_series(r->key);

			steps_add(s,
				  &(struct steps_point){ series, r->rank, r->segment, r->step, r->wall_time,
							 r->value });
			if (!strcmp(r->key, mark))
				steps_add(s,
					  &(struct steps_point){ STEPS_MARK, r->rank, r->segment, r->step, r->wall_time,
								 0 });
		}
	}
	points_close(cursor);
	return rc ? (call_fail_err(c, NULL, &err), -1) : 0;
}

static int read_timed_steps(struct call *c, struct steps *s, const struct query_run *run)
{
	const char *keys[STEPS_SERIES], *mark = choose_mark_series(run);
	struct points_sel sel = { .runs = &run->id, .run_count = 1, .keys = keys, .rank = POINTS_ALL_RANKS };

	for (int i = 0; i < STEPS_MARK; i++)
		if (steps_key(i))
			keys[sel.key_count++] = steps_key(i);
	if (mark)
		keys[sel.key_count++] = mark;
	sel.from_step = steps_first(s);
	sel.to_step = INT64_MAX;
	return read_timing_points(c, s, &sel, mark ? mark : "");
}

int timing_read(struct call *c, const struct query_run *run, bool by_step, struct timing *ret)
{
	struct steps_opts o = { .first = 0, .last = run->last_step,
				.ranks = run->world_size > 0 ? run->world_size : 1 };
	struct steps_batch batch = by_step ? (struct steps_batch){ .global = 1 } : read_step_batch(run);
	struct timing t = { .n = 0 };
	struct err err = ERR_INIT;
	int rc;

	if (o.last < 0)
		o.last = STEPS_MAX;
	*ret = t;
	rc = steps_new(&t.steps, &o, &err);
	if (rc)
		return call_fail_err(c, NULL, &err), rc;
	t.rows = mem_array(steps_span(t.steps) + 1, sizeof(*t.rows));
	rc = read_timed_steps(c, t.steps, run);
	if (!rc) {
		t.n = steps_take(t.steps, &batch, t.rows);
		rc = step_time_of(t.rows, t.n, steps_settled(t.steps), &t.pace, &err);
		if (rc)
			call_fail_err(c, NULL, &err);
	}
	*ret = t;
	return rc;
}

void timing_done(struct timing *t)
{
	free(t->rows);
	steps_free(t->steps);
}
