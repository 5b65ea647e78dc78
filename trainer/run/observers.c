/* SPDX-License-Identifier: Apache-2.0 */
/* observers.c: what is done after each step and each epoch, as one table in the order in which it is done. */
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "trainer/run/nonfinite.h"
#include "trainer/state/tensor_files.h"

struct observer {
	int (*after_step)(struct training *t, const struct step_result *r);
	/* Called with the results of an epoch that is over, before the next one begins. */
	int (*after_epoch)(struct training *t, const struct epoch_summary *s);
};

static bool training_reads_tokens(const struct training *t)
{
	return t->e->subject.data->kind == SAMPLE_TOKENS;
}

/* Returns the training seconds of the open epoch, including those before a restart. */
static double epoch_seconds(const struct training *t)
{
	return t->at.seconds + clock_mono_s() - t->epoch_start_s;
}

struct checkpoint_state observers_position(const struct training *t)
{
	struct checkpoint_state at = t->at;

	if (at.epoch_is_open)
		at.seconds = epoch_seconds(t);
	return at;
}

static int count_step(struct training *t, const struct step_result *r)
{
	const int64_t every = t->e->rank.cfg->eval_steps;

	t->at.step = r->step;
	t->at.in_epoch = r->in_epoch;
	t->at.epoch_is_open = true;
	t->at.evaluation_is_open = every && r->step % every == 0;
	if (isfinite(r->loss)) {
		t->at.loss_sum += r->loss_sum;
		t->at.samples += r->count;
	}
	return 0;
}

/* ---- the spans of a traced step ----
 *
 * A table under the key trace/spans, by rank and step. All texts are in one buffer, and the cells point into it. */

enum { COLUMNS = 6 }; /* thread, name, phase, node (-1: none), begin in nanoseconds since 1970, nanoseconds */

#define TEXTS_MAX ((size_t)64 << 20)

static void add_text_cell(struct buf *texts, size_t *cell, const char *text)
{
	*cell = texts->len;
	buf_add(texts, text, strlen(text) + 1);
}

static void add_number_cell(struct buf *texts, size_t *cell, int64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)v);
	add_text_cell(texts, cell, text);
}

/* Adjacent spans of the trace stay adjacent in the table: begin and end are rounded alike, and the length is their
 * difference. */
static void add_span_row(struct buf *texts, size_t cell[COLUMNS], const struct trace_span *s, int64_t offset_ns)
{
	int64_t from_ns = (int64_t)(s->from_s * 1e9);
	char row[64];

	snprintf(row, sizeof(row), strcmp(s->row, "loader") ? "%s" : "%s %d", s->row, s->number);
	add_text_cell(texts, &cell[0], row);
	add_text_cell(texts, &cell[1], s->name);
	add_text_cell(texts, &cell[2], s->phase);
	add_number_cell(texts, &cell[3], s->node);
	add_number_cell(texts, &cell[4], offset_ns + from_ns);
	add_number_cell(texts, &cell[5], (int64_t)(s->to_s * 1e9) - from_ns);
}

/* at[i]: offset of the text of cell i. */
static int record_span_table(struct dptrack_run *run, int64_t step, const struct buf *texts, const size_t *at,
			     size_t rows)
{
	const char **cells = calloc(rows * COLUMNS, sizeof(*cells));
	int rc;

	if (!cells || buf_failed(texts)) {
		free(cells);
		return DPTRACK_NOMEM;
	}
	for (size_t i = 0; i < rows * COLUMNS; i++)
		cells[i] = texts->data + at[i];
	rc = dptrack_table(run, step, "trace/spans", cells, rows, COLUMNS);
	free(cells);
	return rc;
}

/* Ends the trace of the step, which was over at to_s (clock_mono_s), and records it. The first row is the step itself.
 * Warns when rows are lost. */
static void record_spans(struct trace *t, struct dptrack_run *run, int64_t step, double to_s)
{
	size_t n, lost;
	const struct trace_span *spans = trace_end(t, to_s, &n, &lost);
	struct trace_span whole = { TRACE_STEP_ROW, 0, "", "", -1, trace_from(t), to_s };
	size_t *at = calloc((n + 1) * COLUMNS, sizeof(*at));
	int64_t offset_ns = trace_date_offset_ns(t);
	struct buf texts;
	char name[40];

	buf_init(&texts, TEXTS_MAX);
	snprintf(name, sizeof(name), "step %lld", (long long)step);
	whole.name = name;
	if (at)
		add_span_row(&texts, at, &whole, offset_ns);
	for (size_t i = 0; at && i < n; i++)
		add_span_row(&texts, at + (i + 1) * COLUMNS, &spans[i], offset_ns);
	if (lost || !at || record_span_table(run, step, &texts, at, n + 1))
		log_warn("--trace-steps: spans of step %lld are missing", (long long)step);
	buf_done(&texts);
	free(at);
}

/* ---- records ---- */

static int record_step(struct training *t, const struct step_result *r)
{
	report_step(t->report, r);
	return 0;
}

static int record_epoch(struct training *t, const struct epoch_summary *s)
{
	const struct eval_metrics points = eval_metrics_of_epoch(s, training_reads_tokens(t));

	report_epoch(t->report, &points);
	return 0;
}

static int record_trace(struct training *t, const struct step_result *r)
{
	if (trace_on(t->e->trace))
		record_spans(t->e->trace, report_run(t->report), r->step, t->e->mark_s);
	return 0;
}

static int record_watched_step(struct training *t, const struct step_result *r)
{
	const struct range all = sampler_global(&t->e->course.train, r->in_epoch - 1);
	const struct watch_step s = { step_program(t->e, r->in_epoch), r->step, all.end - all.begin, r->grad_norm,
				      r->loss_scale };

	return watch_due(t->e->watch, r->step) ? watch_record(t->e->watch, report_run(t->report), &s, t->err) : 0;
}

static int print_step(struct training *t, const struct step_result *r)
{
	if (t->console)
		console_step(t->console, r);
	return 0;
}

static int print_epoch(struct training *t, const struct epoch_summary *s)
{
	if (t->console)
		console_epoch(t->console, s);
	return 0;
}

static int save_first_gradients(struct training *t, const struct step_result *r)
{
	const char *path = t->e->rank.cfg->dump_grads;

	return r->step == 1 && path ? files_save_grads(&t->e->tensors, step_program(t->e, 1)->graph, path, t->err) : 0;
}

/* ---- checks ---- */

/* Ends a run whose values are not finite, with the cause as an alert of the run. The losses of dptrain find lr are
 * meant to diverge. */
static int check_values(struct training *t, const struct step_result *r)
{
	int rc = t->range ? 0 : nonfinite_search_check(t->e, r, t->err);
	char title[80];

	if (rc != ERR_CANCELED || !engine_is_root(t->e))
		return rc;
	snprintf(title, sizeof(title), "%s at step %lld",
		 isnan(r->loss) ? "loss nan" : isinf(r->loss) ? "loss infinite" : "gradients not finite",
		 (long long)r->step);
	dptrack_alert(report_run(t->report), DPTRACK_ERROR, r->step, title, t->err->text);
	return rc;
}

static int check_spike(struct training *t, const struct step_result *r)
{
	return t->range ? 0 : loss_spike_check(t->e, report_run(t->report), r, t->err);
}

static int stop_when_asked(struct training *t, const struct step_result *r)
{
	t->stopped |= r->stop || (t->range && lr_range_add(t->range, r->lr, r->loss));
	return 0;
}

/* ---- evaluations and epochs: a run that stops leaves them open ---- */

/* --save-best chooses by points as they are recorded, but does not read the record. */
static void note_metric(struct training *t, const struct eval_metrics *p)
{
	const char *key = t->e->rank.cfg->save_best;

	if (key && eval_metrics_find(p, key, &t->metric))
		t->has_metric = true;
}

static int note_epoch_metric(struct training *t, const struct epoch_summary *s)
{
	const struct eval_metrics points = eval_metrics_of_epoch(s, training_reads_tokens(t));

	note_metric(t, &points);
	return 0;
}

/* Evaluates the set, once for a step that needs it twice. */
static int evaluate_now(struct training *t)
{
	int rc = t->val_step == t->at.step ? 0 : evaluate_run(t->e, NULL, &t->val, t->err);

	t->val_step = t->at.step;
	t->stopped = t->val.stopped;
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
	points = eval_metrics_of_evaluation(&t->val, training_reads_tokens(t), t->at.step);
	report_points(t->report, &points);
	note_metric(t, &points);
	if (t->console)
		console_validation(t->console, t->at.step, &t->val);
	return 0;
}

static int evaluate_after_step(struct training *t, const struct step_result *r)
{
	(void)r;
	return evaluate_when_due(t);
}

static int notify_epoch(struct training *t, const struct epoch_summary *s);

/* Evaluates when due, passes the epoch to all observers and begins the next one. */
static int end_epoch(struct training *t)
{
	struct epoch_summary s = { .epoch = t->at.epoch + 1 };
	int rc = 0;

	if (t->stopped)
		return 0;
	s.seconds = epoch_seconds(t);
	s.train_loss = t->at.samples ? t->at.loss_sum / (double)t->at.samples : (double)NAN; /* 0 / 0 has a sign */
	s.samples_per_s = (double)t->at.samples / s.seconds;
	s.evaluated = t->e->course.evaluates && !t->e->subject.data->endless;
	if (s.evaluated)
		rc = evaluate_now(t);
	s.val = t->val;
	if (!rc && !t->stopped)
		rc = notify_epoch(t, &s);
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

static int end_epoch_after_step(struct training *t, const struct step_result *r)
{
	return r->epoch_ends ? end_epoch(t) : 0;
}

/* ---- checkpoints ---- */

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

	if (t->stopped || !t->e->course.saves)
		return 0;
	best = is_best(t);
	if (!t->saver || (!best && (!every || t->at.step % every)))
		return 0;
	at = observers_position(t);
	return checkpoint_writer_save(t->saver, &at, t->err);
}

static int save_after_step(struct training *t, const struct step_result *r)
{
	(void)r;
	return save_when_due(t);
}

/* ---- the table ---- */

static const struct observer observers[] = {
	{ count_step, NULL },
	{ record_step, record_epoch },
	{ record_trace, NULL },
	{ record_watched_step, NULL },
	{ print_step, print_epoch },
	{ check_values, NULL },
	{ check_spike, NULL },
	{ save_first_gradients, NULL },
	{ stop_when_asked, NULL },
	{ evaluate_after_step, NULL },
	{ end_epoch_after_step, NULL }, /* calls the second column */
	{ save_after_step, note_epoch_metric },
};

#define OBSERVERS (sizeof(observers) / sizeof(observers[0]))

static int notify_epoch(struct training *t, const struct epoch_summary *s)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < OBSERVERS; i++)
		rc = observers[i].after_epoch ? observers[i].after_epoch(t, s) : 0;
	return rc;
}

int observers_after_step(struct training *t, const struct step_result *r)
{
	int rc = 0;

	if (r->blank) {
		observers_skip_step(t);
		return 0;
	}
	for (size_t i = 0; !rc && i < OBSERVERS; i++)
		rc = observers[i].after_step(t, r);
	return rc;
}

void observers_skip_step(struct training *t)
{
	t->stopped = true;
}

int observers_catch_up(struct training *t)
{
	bool evaluates = t->at.evaluation_is_open,
	     ends = t->at.epoch_is_open && t->at.in_epoch == t->e->course.steps_per_epoch;
	int rc = evaluates ? evaluate_when_due(t) : 0;

	if (!rc && ends)
		rc = end_epoch(t);
	return rc || !(evaluates || ends) ? rc : save_when_due(t);
}

bool observers_due(const struct training *t, int64_t step)
{
	const struct run_config *cfg = t->e->rank.cfg;
	const struct train_schedule *c = &t->e->course;

	return (cfg->eval_steps && step % cfg->eval_steps == 0) || (cfg->save_steps && step % cfg->save_steps == 0) ||
	       (cfg->dump_grads && step == 1) || step % c->steps_per_epoch == 0 || step >= c->steps_end || t->range;
}
