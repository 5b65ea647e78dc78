/* SPDX-License-Identifier: Apache-2.0 */
/* observers.c: what is done after each step, and after each epoch: two tables, in the order in which it is done. */
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/run/nonfinite.h"
#include "trainer/state/tensor_files.h"

static bool training_reads_tokens(const struct training *t)
{
	return t->e->workload.data->kind == SAMPLE_TOKENS;
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
	const char **cells = mem_array(rows * COLUMNS, sizeof(*cells));
	int rc;

	if (buf_failed(texts)) {
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
	size_t *at = mem_array((n + 1) * COLUMNS, sizeof(*at));
	int64_t offset_ns = trace_date_offset_ns(t);
	struct buf texts;
	char name[40];

	buf_init(&texts, TEXTS_MAX);
	snprintf(name, sizeof(name), "step %lld", (long long)step);
	whole.name = name;
	add_span_row(&texts, at, &whole, offset_ns);
	for (size_t i = 0; i < n; i++)
		add_span_row(&texts, at + (i + 1) * COLUMNS, &spans[i], offset_ns);
	if (lost || record_span_table(run, step, &texts, at, n + 1))
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
	const struct range all = sampler_global(&t->e->train_schedule.train, r->in_epoch - 1);
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

void observers_note_metric(struct training *t, const struct eval_metrics *p)
{
	const char *key = t->e->rank.cfg->save_best;

	if (key && eval_metrics_find(p, key, &t->metric))
		t->has_metric = true;
}

/* --save-best chooses by points as they are recorded, but does not read the record. */
static int note_metric(struct training *t, const struct epoch_summary *s)
{
	const struct eval_metrics points = eval_metrics_of_epoch(s, training_reads_tokens(t));

	observers_note_metric(t, &points);
	return 0;
}

/* ---- the tables ---- */

static int (*const after_step[])(struct training *t, const struct step_result *r) = {
	count_step, record_step, record_trace, record_watched_step, print_step,
	check_values, check_spike, save_first_gradients, stop_when_asked,
};

static int (*const after_epoch[])(struct training *t, const struct epoch_summary *s) = {
	record_epoch, print_epoch, note_metric,
};

int observers_after_step(struct training *t, const struct step_result *r)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(after_step) / sizeof(after_step[0]); i++)
		rc = after_step[i](t, r);
	return rc;
}

int observers_after_epoch(struct training *t, const struct epoch_summary *s)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(after_epoch) / sizeof(after_epoch[0]); i++)
		rc = after_epoch[i](t, s);
	return rc;
}
