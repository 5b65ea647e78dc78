/* diagnosis.c: /runs/{run}/diagnosis: what makes a run slow. What is read here tracker/insight judges. */
#include "web/api/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/tree.h"
#include "web/api/handlers.h"
#include "web/api/native/insight/timing.h"

/* "…, 8 cores" */
static double cores_of(const struct query_run *run)
{
	const char *cpu = NULL, *comma;

	for (size_t i = 0; i < run->environment_count; i++)
		if (!strcmp(run->environment[i].key, "cpu"))
			cpu = run->environment[i].value;
	comma = cpu ? strrchr(cpu, ',') : NULL;
	return comma && strstr(comma, " core") ? strtod(comma + 1, NULL) : NAN;
}

/* Ranks on the machine of the first one. */
static double local_world(const struct query_run *run)
{
	double n = 0;

	for (size_t i = 0; i < run->rank_count; i++)
		n += run->ranks[i].rank >= 0 && !strcmp(run->ranks[i].host, run->ranks[0].host);
	return n > 0 ? n : NAN;
}

static double workers_of(const struct query_run *run)
{
	for (size_t i = 0; i < run->param_count; i++)
		if (!strcmp(run->params[i].key, "workers") && !strcmp(run->params[i].value, "0"))
			return 0;
	return timing_param(run, "workers", NAN);
}

static bool evaluates(const struct query_run *run)
{
	return timing_metric(run, "val/seconds") || timing_metric(run, "epoch/eval_seconds");
}

/* Nothing but times from point to point tells of no leaf. */
static bool has_phases(const struct timing *t)
{
	for (size_t i = 0; i < t->n; i++)
		for (int k = 0; k < PACE_other; k++)
			if (t->rows[i].phase[k] > 0)
				return true;
	return false;
}

static void fill_run(struct tree_run *t, const struct query_run *run, const struct timing *timing, int64_t from)
{
	t->workers = workers_of(run);
	t->threads = timing_param(run, "threads", NAN);
	t->local_world = local_world(run);
	t->cores = cores_of(run);
	t->batch_size = timing_param(run, "batch_size", NAN);
	t->parameters = timing_param(run, "parameters", NAN);
	t->bucket_cap_mb = timing_param(run, "bucket_cap_mb", NAN);
	t->comm_total = steps_mean(timing->steps, STEPS_COMM_TOTAL, from);
	t->load = steps_mean(timing->steps, STEPS_LOAD, from);
	t->load_cpu = steps_mean(timing->steps, STEPS_LOAD_CPU, from);
	t->ready = steps_mean(timing->steps, STEPS_READY, from);
	if (evaluates(run))
		t->evaluation = timing->pace.phase[PACE_between] * timing->pace.samples / (double)timing->pace.steps;
	t->checkpoint = steps_mean(timing->steps, STEPS_COPY, from);
	if (!isnan(steps_mean(timing->steps, STEPS_WAIT, from)))
		t->checkpoint += steps_mean(timing->steps, STEPS_WAIT, from);
}

static void write_number(struct js *j, const char *key, double v)
{
	js_key(j, key);
	if (isnan(v))
		js_null(j);
	else
		js_double(j, v);
}

static void write_finding(struct js *j, const struct tree_finding *f)
{
	js_open(j, '{');
	js_key_str(j, "leaf", f->leaf);
	write_number(j, "share", f->share);
	write_number(j, "low", f->low);
	write_number(j, "high", f->high);
	js_key_str(j, "evidence", f->evidence);
	js_key_str(j, "usual", f->usual);
	js_key_str(j, "action", f->action);
	write_number(j, "gain", f->gain);
	js_close(j, '}');
}

static void write_report(struct call *c, const struct tree_report *r, const struct pace *p)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_str(&j, "verdict", r->verdict);
	js_key(&j, "leaves");
	js_open(&j, '[');
	for (size_t i = 0; i < r->n; i++)
		write_finding(&j, &r->findings[i]);
	js_close(&j, ']');
	js_key_str(&j, "bound", r->bound);
	js_key_int(&j, "steps", (int64_t)p->steps);
	js_key_int(&j, "warmup", (int64_t)p->warmup);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

static enum call_next judge(struct call *c, const struct query_run *run, const struct timing *t)
{
	struct tree_run r = tree_unknown();
	struct tree_report report;
	struct tree_rank *ranks = arena_array(c->arena, (size_t)run->world_size + 1, sizeof(*ranks));
	int64_t from = t->rows[t->pace.warmup].step;
	struct err err = ERR_INIT;

	if (!ranks)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	fill_run(&r, run, t, from);
	r.steps = t->rows + t->pace.warmup;
	r.n = t->pace.steps;
	r.ranks = ranks;
	for (int rank = 0; rank < run->world_size; rank++) {
		struct tree_rank *one = &ranks[r.n_ranks];

		one->rank = rank;
		r.n_ranks += steps_rank(t->steps, rank, from, &one->seconds, one->phase);
	}
	if (tree_judge(&r, &report, &err))
		return call_fail_err(c, NULL, &err);
	write_report(c, &report, &t->pace);
	return CALL_DONE;
}

enum call_next on_run_diagnosis(struct call *c)
{
	const char *id = call_run_id(c, 0);
	enum call_next next = CALL_DONE;
	struct query_run run;
	struct timing t;
	struct err err = ERR_INIT;

	if (!id || !call_args_done(c))
		return CALL_DONE;
	if (query_run(c->api->store, id, c->arena, &run, &err))
		return call_fail_err(c, "run", &err);
	if (!timing_read(c, &run, &t)) {
		if (has_phases(&t))
			next = judge(c, &run, &t);
		else
			call_fail(c, CALL_not_found, "run", "run %s has no series phase/… by which it could be judged",
				  run.name);
	}
	timing_done(&t);
	return next;
}
