/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c: the steps of a training, evaluations, the ends of its epochs, and checkpoints in between. */
#include "trainer/run/observers.h"

#include <math.h>

/* Returns the training seconds of the open epoch, including those before a restart. */
static double epoch_seconds(const struct training *t)
{
	return t->at.seconds + clock_mono_s() - t->epoch_start_s;
}

struct checkpoint_state loop_position(const struct training *t)
{
	struct checkpoint_state at = t->at;

	if (at.epoch_is_open)
		at.seconds = epoch_seconds(t);
	return at;
}

/* Evaluates the set, once for a step that needs it twice. */
static int evaluate_now(struct training *t)
{
	const bool again = t->val_step == t->at.step;
	int rc = again ? 0 : evaluate_run(t->e, NULL, &t->val, t->err);

	t->val_step = t->at.step;
	t->stopped = t->val.stopped;
	if (!rc && !again && !t->stopped)
		rc = answering_record(t->answering, report_run(t->report), t->at.step, t->err);
	return rc;
}

static int evaluate_when_due(struct training *t)
{
	int64_t every = t->e->rank.cfg->eval_steps;
	double start = clock_mono_s();
	struct eval_metrics points;
	int rc;

	if (t->stopped || !every || t->at.step % every)
		return 0;
	rc = evaluate_now(t);
	t->epoch_start_s += clock_mono_s() - start; /* an epoch's seconds are those of training alone */
	if (rc || t->stopped)
		return rc;
	t->at.evaluation_is_open = false;
	points = eval_metrics_of_evaluation(&t->val, t->e->workload.data->kind == SAMPLE_TOKENS, t->at.step);
	report_points(t->report, &points);
	observers_note_metric(t, &points);
	if (t->console)
		console_validation(t->console, t->at.step, &t->val);
	return 0;
}

/* Evaluates the set, passes the epoch to the observers and begins the next one. */
static int end_epoch(struct training *t)
{
	struct epoch_summary s = { .epoch = t->at.epoch + 1 };
	int rc = 0;

	if (t->stopped)
		return 0;
	s.seconds = epoch_seconds(t);
	s.train_loss = t->at.samples ? t->at.loss_sum / (double)t->at.samples : (double)NAN; /* 0 / 0 has a sign */
	s.samples_per_s = (double)t->at.samples / s.seconds;
	s.evaluated = t->e->train_schedule.evaluates && !t->e->workload.data->endless;
	if (s.evaluated)
		rc = evaluate_now(t);
	s.val = t->val;
	if (!rc && !t->stopped)
		rc = observers_after_epoch(t, &s);
	if (rc || t->stopped)
		return rc;
	t->at.epoch++;
	t->at.in_epoch = 0;
	t->at.epoch_is_open = false;
	t->at.loss_sum = 0;
	t->at.samples = 0;
	t->at.seconds = 0;
	t->epoch_start_s = clock_mono_s();
	return 0;
}

/* Returns true if --save-best's series has its best value so far; the same on every rank. */
static bool is_best(struct training *t)
{
	const double value = t->metric;
	bool less, has = t->has_metric;

	t->has_metric = false;
	if (!has || !isfinite(value))
		return false;
	less = series_best(t->e->rank.cfg->save_best)->best == SERIES_BEST_LESS;
	if (t->at.has_best && (less ? value >= t->at.best : value <= t->at.best))
		return false;
	t->at.has_best = true;
	t->at.best = value;
	t->at.best_step = t->at.step;
	return true;
}

static int save_when_due(struct training *t)
{
	const int64_t every = t->e->rank.cfg->save_steps;
	struct checkpoint_state at;
	bool best;

	if (t->stopped || !t->e->train_schedule.saves)
		return 0;
	best = is_best(t);
	if (!t->saver || (!best && (!every || t->at.step % every)))
		return 0;
	at = loop_position(t);
	return checkpoint_writer_save(t->saver, &at, t->err);
}

/* Returns true if something is due after that step, which must be over and the last one begun. */
static bool needs_all_steps(const struct training *t, int64_t step)
{
	const struct run_config *cfg = t->e->rank.cfg;
	const struct train_schedule *c = &t->e->train_schedule;

	return (cfg->eval_steps && step % cfg->eval_steps == 0) || (cfg->save_steps && step % cfg->save_steps == 0) ||
	       (cfg->dump_grads && step == 1) || step % c->steps_per_epoch == 0 || step >= c->steps_end || t->range;
}

/* The evaluation, the end of an epoch and the checkpoint that are due. A run that stops leaves the rest undone. */
static int do_what_is_due(struct training *t, bool evaluates, bool epoch_ends)
{
	int rc = evaluates ? evaluate_when_due(t) : 0;

	if (!rc && epoch_ends)
		rc = end_epoch(t);
	return rc ? rc : save_when_due(t);
}

/* Does what was due after the last step of a resumed run when it was stopped. */
static int catch_up(struct training *t)
{
	const bool evaluates = t->at.evaluation_is_open,
		   ends = t->at.epoch_is_open && t->at.in_epoch == t->e->train_schedule.steps_per_epoch;

	return evaluates || ends ? do_what_is_due(t, evaluates, ends) : 0;
}

/* A blank step had no data when an end was requested. */
static int finish_step(struct training *t, const struct step_result *r)
{
	int rc = 0;

	if (r->blank) {
		t->stopped = true;
		return 0;
	}
	rc = observers_after_step(t, r);
	return rc ? rc : do_what_is_due(t, true, r->epoch_ends);
}

/* Handles finished steps; all: leaves none in progress. */
static int finish_steps(struct training *t, bool all)
{
	struct step_result r;
	int rc;

	while ((rc = step_end(t->e, all, &r, t->err)) == 1) {
		rc = finish_step(t, &r);
		if (rc)
			return rc;
	}
	return rc;
}

/* Begins a step and returns like step_begin. After a failure the steps before it are finished and reported. */
static int begin_step(struct training *t)
{
	struct err why;
	int rc = step_begin(t->e, t->err);

	if (rc >= 0)
		return rc;
	why = *t->err;
	finish_steps(t, true);
	*t->err = why;
	return rc;
}

int loop_run(struct training *t)
{
	struct engine *e = t->e;
	int begun = 1, rc = engine_begin(e, t->err);

	t->epoch_start_s = clock_mono_s();
	if (!rc)
		rc = catch_up(t);
	while (!rc && begun && e->step < e->train_schedule.steps_end && !t->stopped) {
		begun = begin_step(t);
		t->stopped |= !begun;
		rc = begun < 0 ? begun : finish_steps(t, needs_all_steps(t, e->step));
	}
	return rc ? rc : finish_steps(t, true);
}
