/* SPDX-License-Identifier: Apache-2.0 */
/* api_diagnosis.c: /runs/{run}/diagnosis: what limits the speed of a run. Reads the inputs; tracker/insight judges
 * them. */
#include <string.h>

#include "tracker/insight/learning.h"
#include "tracker/insight/run_diagnosis.h"
#include "web/api/native/insight/timing.h"

/* --- overfitting: the validation losses of a run, then its training losses -------------------------------------- */

enum { OVERFIT_ROWS = 512 };

struct loss_reader {
	struct call *c;
	const struct query_run *run;
	struct learning *l;
	int64_t scale; /* optimiser steps per step of the series */
	bool validation;
};

static int add_loss_point(const struct loss_reader *r, const struct points_row *row, struct err *err)
{
	if (r->validation)
		return learning_validation(r->l, row->step * r->scale, row->value, err);
	learning_training(r->l, row->step * r->scale, row->value);
	return 0;
}

static int read_loss_series(const struct loss_reader *r, const char *key, struct err *err)
{
	const struct points_sel sel = { .runs = &r->run->id, .run_count = 1, .keys = &key, .key_count = 1, .rank = -1,
					.from_step = INT64_MIN, .to_step = INT64_MAX };
	struct points_row *rows = arena_array(r->c->arena, OVERFIT_ROWS, sizeof(*rows));
	struct points_cursor *cursor;
	size_t n = 1;
	int rc = points_open(&cursor, r->c->api->store, &sel, NULL, err);

	if (rc)
		return rc;
	while (n && !(rc = points_next(cursor, rows, OVERFIT_ROWS, &n, err)))
		for (size_t i = 0; !rc && i < n; i++)
			rc = add_loss_point(r, &rows[i], err);
	points_close(cursor);
	return rc;
}

/* Sets *ret if *ret_found becomes true. Its steps are optimiser steps if the run has the param steps_per_epoch. */
static int overfit_read(struct call *c, const struct query_run *run, struct learning_overfit *ret, bool *ret_found,
			struct err *err)
{
	struct loss_reader r = { .c = c, .run = run, .scale = 1, .validation = true };
	const struct learning_series *of;
	unsigned seen = 0;
	int rc;

	*ret_found = false;
	for (size_t i = 0; i < run->metric_count; i++)
		learning_see(&seen, run->metrics[i].key);
	of = learning_pick(seen);
	if (!of)
		return 0;
	if (of->by_epoch)
		r.scale = (int64_t)timing_param(run, "steps_per_epoch", 1);
	rc = learning_new(&r.l, err);
	if (!rc)
		rc = read_loss_series(&r, of->validation, err);
	r.validation = false;
	if (!rc)
		rc = read_loss_series(&r, of->training, err);
	if (!rc)
		*ret_found = learning_overfits(r.l, ret);
	learning_free(r.l);
	return rc;
}

enum { VITALS_ROWS = 512, OVERFIT_TEXT_MAX = 4096 };

/* Number of ranks on the machine of the first rank; NAN if it is unknown. */
static double count_local_ranks(const struct query_run *run)
{
	double n = 0;

	for (size_t i = 0; i < run->rank_count; i++)
		n += *run->ranks[i].host && !strcmp(run->ranks[i].host, run->ranks[0].host);
	return n > 0 ? n : NAN;
}

static struct diagnosis_facts collect_judge_facts(const struct query_run *run)
{
	struct diagnosis_facts f = diagnosis_unknown();

	for (size_t i = 0; i < run->param_count; i++)
		diagnosis_param(&f, run->params[i].key, run->params[i].value);
	for (size_t i = 0; i < run->environment_count; i++)
		diagnosis_environment(&f, run->environment[i].key, run->environment[i].value);
	for (size_t i = 0; i < run->metric_count; i++)
		diagnosis_series(&f, run->metrics[i].key);
	f.local_world = count_local_ranks(run);
	f.world = run->world_size > 0 ? run->world_size : 1;
	return f;
}

/* Reads the system statistics of all ranks from a step on. */
static int read_system_stats(struct call *c, const struct query_run *run, int64_t from, struct system_stats *v,
			     struct err *err)
{
	const char *keys[SYSTEM_STATS_SERIES];
	struct points_sel sel = { .runs = &run->id, .run_count = 1, .keys = keys, .key_count = SYSTEM_STATS_SERIES,
				  .rank = POINTS_ALL_RANKS, .from_step = from, .to_step = INT64_MAX };
	struct points_row *rows = arena_array(c->arena, VITALS_ROWS, sizeof(*rows));
	struct points_cursor *cursor;
	size_t n = 1;
	int rc;

	for (int i = 0; i < SYSTEM_STATS_SERIES; i++)
		keys[i] = system_stats_key(i);
	rc = points_open(&cursor, c->api->store, &sel, NULL, err);
	if (rc)
		return rc;
	while (n && !(rc = points_next(cursor, rows, VITALS_ROWS, &n, err)))
		for (size_t i = 0; !rc && i < n; i++)
			rc = system_stats_add(v,
					      &(struct system_stats_point){ system_stats_series(rows[i].key),
									    rows[i].rank, rows[i].step,
									    rows[i].wall_time, rows[i].value },
					      err);
	points_close(cursor);
	return rc;
}

static void write_tree_finding(struct js *j, const struct bottleneck_finding *f)
{
	js_open(j, '{');
	js_key_str(j, "leaf", f->leaf);
	js_key_str(j, "sentence", f->sentence);
	js_key_number(j, "share", f->share);
	js_key_number(j, "low", f->low);
	js_key_number(j, "high", f->high);
	js_key_str(j, "evidence", f->evidence);
	js_key_str(j, "usual", f->usual);
	js_key_str(j, "action", f->action);
	js_key_number(j, "gain", f->gain);
	js_close(j, '}');
}

static int write_overfit(struct call *c, struct js *j, const struct query_run *run, struct err *err)
{
	struct learning_overfit o;
	struct buf text;
	bool found;
	int rc = overfit_read(c, run, &o, &found, err);

	js_key(j, "overfitting");
	if (rc || !found) {
		js_null(j);
		return rc;
	}
	buf_init(&text, OVERFIT_TEXT_MAX);
	learning_sentence(&text, &o);
	buf_addc(&text, '\0');
	js_open(j, '{');
	js_key_int(j, "step", o.step);
	js_key_str(j, "sentence", buf_failed(&text) ? "" : (const char *)text.data);
	js_close(j, '}');
	buf_done(&text);
	return 0;
}

/* Replies with the findings of the tree. */
static int write_diagnosis(struct call *c, const struct query_run *run, const struct bottleneck_report *r,
			   const struct step_time *p, struct err *err)
{
	struct js j = { .out = &c->out };
	int rc;

	js_open(&j, '{');
	js_key_str(&j, "verdict", r->verdict);
	js_key_str(&j, "sentence", r->sentence);
	js_key_open(&j, "leaves", '[');
	for (size_t i = 0; i < r->n; i++)
		write_tree_finding(&j, &r->findings[i]);
	js_close(&j, ']');
	js_key_str(&j, "bound", r->bound);
	js_key_int(&j, "steps", (int64_t)p->steps);
	js_key_int(&j, "warmup", (int64_t)p->warmup);
	rc = write_overfit(c, &j, run, err);
	js_key(&j, "problem");
	js_null(&j);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return rc;
}

/* Replies for a run that cannot be diagnosed, as most runs that dptrain did not record. */
static int write_undiagnosable(struct call *c, const struct query_run *run, const char *why, struct err *err)
{
	struct js j = { .out = &c->out };
	int rc;

	js_open(&j, '{');
	js_key(&j, "verdict");
	js_null(&j);
	js_key(&j, "sentence");
	js_null(&j);
	js_key_open(&j, "leaves", '[');
	js_close(&j, ']');
	js_key_str(&j, "bound", "");
	js_key_int(&j, "steps", 0);
	js_key_int(&j, "warmup", 0);
	rc = write_overfit(c, &j, run, err);
	js_key_str(&j, "problem", why);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return rc;
}

/* Diagnoses the run and replies. ERR_USAGE in err: the run lacks the data for it. */
static int diagnose_run(struct call *c, const struct query_run *run, const struct timing *t, struct err *err)
{
	struct diagnosis_facts facts = collect_judge_facts(run);
	struct system_stats *vitals = NULL;
	struct bottleneck_report report;
	int rc = system_stats_new(&vitals, facts.world, err);

	if (!rc)
		rc = read_system_stats(c, run, steps_first(t->steps), vitals, err);
	if (!rc)
		rc = diagnosis_run(&(struct diagnosis_input){ &facts, t->steps, t->rows, &t->pace, vitals }, &report,
				   err);
	if (!rc)
		rc = write_diagnosis(c, run, &report, &t->pace, err);
	system_stats_free(vitals);
	return rc;
}

enum call_next on_run_diagnosis(struct call *c)
{
	const char *id = call_run_id(c, 0);
	struct query_run run;
	struct timing t;
	struct err err = ERR_INIT, why = ERR_INIT;
	int rc;

	if (!id || !call_args_done(c))
		return CALL_DONE;
	if (query_run(c->api->store, id, c->arena, &run, &err))
		return call_fail_err(c, "run", &err);
	if (!timing_read(c, &run, false, &t)) {
		rc = diagnose_run(c, &run, &t, &err);
		if (rc && err.code == ERR_USAGE)
			rc = write_undiagnosable(c, &run, err.text, &why);
		if (rc)
			call_fail_err(c, NULL, why.code ? &why : &err);
	}
	timing_done(&t);
	return CALL_DONE;
}
