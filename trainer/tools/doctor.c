/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c: reads the journals of a run through dptrack.h, twice: first the ranks and series, then the points.
 * tracker/insight makes the diagnosis. Knows no model and no engine. */
#include "trainer/tools/subcommands.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/base/log.h"
#include "tracker/insight/learning.h"
#include "tracker/insight/run_diagnosis.h"
#include "tracker/mem/mem.h"
#include "trainer/tools/child.h"

#define TEXT_MAX ((size_t)1 << 20)
#define STEPS_FEW 10 /* fewer steps may be chance */

struct validation_point { /* a point of a series that learning_validates */
	const struct learning_series *of;
	int64_t step;
	double loss;
};

struct run_doctor {
	struct diagnosis_facts facts;
	int segment;	/* the newest one, whose ranks are counted */
	char host[256]; /* host of its first rank */
	char name[1001];
	int64_t last; /* last step; -1: none */
	struct steps *steps;
	struct system_stats *vitals;
	unsigned losses;		    /* result of learning_see */
	const struct learning_series *pair; /* the selected pair; NULL: no validation */
	struct learning *learning;
	struct validation_point *validated; /* for all pairs, since a pair is selected only after the first reading */
	size_t n_validated, validated_room;
	struct learning_overfit overfit;
	bool overfits;
	struct step_time_step *rows;
	size_t n;
	struct step_time pace;
	struct bottleneck_report report;
	struct err err; /* first failure to store a point */
};

/* ---- ranks and series ---- */

static void note_journal(void *user, const struct dptrack_journal *j)
{
	struct run_doctor *d = user;

	if (j->rank < 0 || j->segment < d->segment)
		return;
	if (j->segment > d->segment || !d->host[0]) {
		d->segment = j->segment;
		d->facts.local_world = 0;
		snprintf(d->host, sizeof(d->host), "%s", j->host);
	}
	d->facts.world = j->world_size > 1 ? j->world_size : 1;
	d->facts.local_world += !strcmp(d->host, j->host);
	snprintf(d->name, sizeof(d->name), "%s", j->run_name);
}

static void keep_validation(struct run_doctor *d, const struct dptrack_point *p)
{
	const struct learning_series *of = p->rank < 0 ? learning_validates(p->key) : NULL;

	if (!of || d->err.code)
		return;
	mem_push(&d->validated, &d->n_validated, &d->validated_room,
		 (struct validation_point){ of, p->step, p->value });
}

static void note_point(void *user, const struct dptrack_point *p)
{
	struct run_doctor *d = user;

	keep_validation(d, p);
	diagnosis_series(&d->facts, p->key);
	learning_see(&d->losses, p->key);
	if (steps_series(p->key) >= 0 && p->step > d->last)
		d->last = p->step;
}

static void note_fact(void *user, enum dptrack_fact kind, const char *key, const char *value)
{
	struct run_doctor *d = user;

	if (kind == DPTRACK_FACT_PARAM)
		diagnosis_param(&d->facts, key, value);
	else if (kind == DPTRACK_FACT_ENVIRONMENT)
		diagnosis_environment(&d->facts, key, value);
}

/* ---- losses ---- */

/* Returns the optimiser steps per step of the selected losses. */
static int64_t steps_per_loss(const struct run_doctor *d)
{
	return d->pair->by_epoch && d->facts.steps_per_epoch >= 1 ? (int64_t)d->facts.steps_per_epoch : 1;
}

/* Adds the validations, which must come before the training losses. */
static int begin_learning(struct run_doctor *d, struct err *err)
{
	int rc;

	d->pair = learning_pick(d->losses);
	if (!d->pair)
		return 0;
	rc = learning_new(&d->learning, err);
	for (size_t i = 0; !rc && i < d->n_validated; i++)
		if (d->validated[i].of == d->pair)
			rc = learning_validation(d->learning, d->validated[i].step * steps_per_loss(d),
						 d->validated[i].loss, err);
	return rc;
}

static void add_training_loss(struct run_doctor *d, const struct dptrack_point *p)
{
	if (d->pair && p->rank < 0 && !strcmp(p->key, d->pair->training))
		learning_training(d->learning, p->step * steps_per_loss(d), p->value);
}

/* ---- points ---- */

static void add_step_point(void *user, const struct dptrack_point *p)
{
	struct run_doctor *d = user;

	add_training_loss(d, p);
	steps_add(d->steps,
		  &(struct steps_point){ steps_series(p->key), p->rank, p->segment, p->step, p->wall_time, p->value });
	if (!d->err.code && p->segment == d->segment)
		system_stats_add(d->vitals,
				 &(struct system_stats_point){ system_stats_series(p->key), p->rank, p->step,
							       p->wall_time, p->value },
				 &d->err);
}

/* Reads the journals once. d->err holds failures of the callbacks. */
static int read_run_with(struct run_doctor *d, const char *dir, const struct dptrack_reader *reader, struct err *err)
{
	struct dptrack_error error = { 0, "" };

	if (dptrack_read(dir, reader, &error))
		return err_set(err, error.code == DPTRACK_NOENT ? ERR_NOENT : ERR_USAGE, "%s", error.text);
	if (d->err.code)
		*err = d->err;
	return d->err.code;
}

static int open_steps(struct run_doctor *d, struct err *err)
{
	const struct steps_opts o = { .first = 0, .last = d->last, .ranks = d->facts.world };
	int rc = steps_new(&d->steps, &o, err);

	return rc ? rc : system_stats_new(&d->vitals, o.ranks, err);
}

/* Reads ranks and series of the run in f->dir, or of the newest run in that folder: then f names that run. */
static int read_run_facts(struct run_doctor *d, struct dptrack_found *f, struct err *err)
{
	const struct dptrack_reader first = {
		.user = d, .journal = note_journal, .point = note_point, .fact = note_fact
	};
	struct dptrack_found newest;
	int rc = read_run_with(d, f->dir, &first, err);

	if (rc != ERR_NOENT)
		return rc;
	if (dptrack_find(&newest, &(struct dptrack_run_opts){ .runs_dir = f->dir }, NULL))
		return err_set(err, ERR_USAGE,
			       "--run %s: not the folder of a run: it has no journal, nor have its subfolders", f->dir);
	log_info("%s: not the folder of a run; the newest run in it is %s", f->dir, newest.dir);
	*f = newest;
	*err = (struct err)ERR_INIT;
	return read_run_with(d, f->dir, &first, err);
}

static int read_journals(struct run_doctor *d, struct dptrack_found *f, struct err *err)
{
	const struct dptrack_reader second = { .user = d, .point = add_step_point };
	int rc = read_run_facts(d, f, err);

	if (!rc && d->last < 0)
		rc = err_set(err, ERR_USAGE, "%s: the run has no steps to diagnose", f->dir);
	if (!rc)
		rc = open_steps(d, err);
	if (!rc)
		rc = begin_learning(d, err);
	if (!rc)
		rc = read_run_with(d, f->dir, &second, err);
	d->overfits = !rc && d->pair && learning_overfits(d->learning, &d->overfit);
	return rc;
}

static int diagnose_run(struct run_doctor *d, struct err *err)
{
	struct steps_batch batch = { .global = d->facts.global_batch_size > 0 ? d->facts.global_batch_size : 1 };
	int rc;

	d->rows = mem_array(steps_span(d->steps) + 1, sizeof(*d->rows));
	d->n = steps_take(d->steps, &batch, d->rows);
	rc = step_time_of(d->rows, d->n, steps_settled(d->steps), &d->pace, err);
	if (rc)
		return rc;
	return diagnosis_run(&(struct diagnosis_input){ &d->facts, d->steps, d->rows, &d->pace, d->vitals }, &d->report,
			     err);
}

/* ---- output ---- */

static json_t *json_finding(const struct bottleneck_finding *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "leaf", json_string(f->leaf));
	json_object_set_new(o, "sentence", json_string(f->sentence));
	json_object_set_new(o, "share", real_or_null(f->share));
	json_object_set_new(o, "low", real_or_null(f->low));
	json_object_set_new(o, "high", real_or_null(f->high));
	json_object_set_new(o, "evidence", json_string(f->evidence));
	json_object_set_new(o, "usual", json_string(f->usual));
	json_object_set_new(o, "action", json_string(f->action));
	json_object_set_new(o, "gain", real_or_null(f->gain));
	return o;
}

/* Adds the steps in the form of `dptrain bench --json`, which child.c reads. */
static void add_json_steps(const struct run_doctor *d, json_t *o)
{
	json_t *seconds = json_array(), *phases = json_object();

	for (size_t i = 0; i < d->n; i++)
		json_array_append_new(seconds, real_or_null(d->rows[i].seconds));
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		json_t *list = json_array();

		for (size_t i = 0; i < d->n; i++)
			json_array_append_new(list, real_or_null(d->rows[i].phase[k]));
		json_object_set_new(phases, step_time_phase_name((enum step_time_phase)k), list);
	}
	json_object_set_new(o, "global_batch_size", real_or_null(d->facts.global_batch_size));
	json_object_set_new(o, "all_step_seconds", seconds);
	json_object_set_new(o, "all_phases", phases);
}

static json_t *json_tried(const struct bottleneck_finding *f, const struct run_change *found)
{
	json_t *o = json_object();

	json_object_set_new(o, "flags", json_string(f->flags));
	json_object_set_new(o, "promised", real_or_null(f->gain));
	json_object_set_new(o, "found", real_or_null(found->factor));
	json_object_set_new(o, "low", real_or_null(found->low));
	json_object_set_new(o, "high", real_or_null(found->high));
	return o;
}

static json_t *json_overfitting(const struct run_doctor *d)
{
	struct buf text;
	json_t *o;

	if (!d->overfits)
		return json_null();
	buf_init(&text, TEXT_MAX);
	learning_sentence(&text, &d->overfit);
	o = json_object();
	json_object_set_new(o, "step", json_integer((json_int_t)d->overfit.step));
	json_object_set_new(o, "sentence", json_stringn((const char *)text.data, text.len));
	buf_done(&text);
	return o;
}

static void print_doctor_json(const struct run_doctor *d, const struct run_change *found)
{
	json_t *o = json_object(), *leaves = json_array();

	for (size_t i = 0; i < d->report.n; i++)
		json_array_append_new(leaves, json_finding(&d->report.findings[i]));
	json_object_set_new(o, "verdict", json_string(d->report.verdict));
	json_object_set_new(o, "sentence", json_string(d->report.sentence));
	json_object_set_new(o, "leaves", leaves);
	json_object_set_new(o, "bound", json_string(d->report.bound));
	json_object_set_new(o, "steps", json_integer((json_int_t)d->pace.steps));
	json_object_set_new(o, "warmup", json_integer((json_int_t)d->pace.warmup));
	json_object_set_new(o, "overfitting", json_overfitting(d));
	if (found)
		json_object_set_new(o, "tried", json_tried(&d->report.findings[0], found));
	add_json_steps(d, o);
	json_print(o, JSON_PRINT_PAGE);
}

static void print_tried(const struct bottleneck_finding *f, const struct run_change *found)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	run_change_describe(&text, found, "the run without", f->flags);
	printf("tried: %s", text.data ? text.data : "");
	if (!isnan(f->gain))
		printf("; expected was up to %.2fx", f->gain);
	putchar('\n');
	buf_done(&text);
}

static void print_doctor_text(const struct run_doctor *d, const struct run_change *found)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	bottleneck_print(&text, &d->report);
	if (d->overfits) {
		learning_sentence(&text, &d->overfit);
		buf_addc(&text, '\n');
	}
	printf("%s: %.4g ms a step, %zu step%s (%zu more left out as warm-up)%s\n%s", d->name,
	       1e3 * d->pace.seconds * d->pace.samples / (double)d->pace.steps, d->pace.steps,
	       d->pace.steps > 1 ? "s" : "", d->pace.warmup,
	       d->pace.steps < STEPS_FEW ? ": few steps, so the following may be chance" : "",
	       text.data ? text.data : "");
	buf_done(&text);
	if (found)
		print_tried(&d->report.findings[0], found);
}

/* Returns 0: *ret is filled; 1: nothing to try, the reason is logged; negative with err. */
static int try_first_action(const struct run_doctor *d, const struct job *job, struct run_change *ret, struct err *err)
{
	const struct bottleneck_finding *f = d->report.n ? &d->report.findings[0] : NULL;

	if (!f || !f->flags[0])
		log_info("--try: %s", f ? "the first action has no flags" : "nothing to improve");
	return f && f->flags[0] ? bench_compare_try(job, f->flags, ret, err) : 1;
}

static int report_diagnosis(struct run_doctor *d, const struct job *job, struct err *err)
{
	struct run_change found;
	int tried = job->cfg->try && !job->cfg->run ? try_first_action(d, job, &found, err) : 1;

	if (tried < 0)
		return tried;
	if (job->cfg->json)
		print_doctor_json(d, tried ? NULL : &found);
	else
		print_doctor_text(d, tried ? NULL : &found);
	return fflush(stdout) ? err_set(err, ERR_IO, "cannot write to stdout") : 0;
}

int doctor_main(const struct job *job, const char *run_id, struct err *err)
{
	struct run_doctor d = { .facts = diagnosis_unknown(), .last = -1 };
	struct dptrack_found found;
	int rc = 0;

	if (!job->cfg->run)
		rc = recorded_run(job, run_id, &found, err);
	else if ((size_t)snprintf(found.dir, sizeof(found.dir), "%s", job->cfg->run) >= sizeof(found.dir))
		rc = err_set(err, ERR_USAGE, "--run %.100s…: the path is too long", job->cfg->run);
	if (!rc)
		rc = read_journals(&d, &found, err);
	if (!rc)
		rc = diagnose_run(&d, err);
	if (!rc)
		rc = report_diagnosis(&d, job, err);
	free(d.rows);
	system_stats_free(d.vitals);
	learning_free(d.learning);
	free(d.validated);
	steps_free(d.steps);
	return rc;
}
