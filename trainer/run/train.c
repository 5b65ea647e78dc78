/* train.c: the training loop of one rank, from opening to its exit code. */
#include "trainer/run/train.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/insight/tuning.h"
#include "trainer/run/cached_step.h"
#include "trainer/run/checkpoint_writer.h"
#include "trainer/run/console.h"
#include "trainer/run/loss_spike.h"
#include "trainer/run/nonfinite_search.h"
#include "trainer/run/trace_report.h"
#include "trainer/run/watch_record.h"
#include "trainer/state/initial.h"
#include "trainer/state/tensor_files.h"

#define RANGE_TEXT_MAX 4096

struct training {
	struct engine *e;
	struct resume resume;
	struct report *report;
	struct console *console; /* rank 0 */
	struct checkpoint_writer *saver;	 /* rank 0, and ranks that own parts, when checkpoints are written */
	struct err *err;

	struct checkpoint_state at; /* position of the run; its seconds are those before epoch_start_s */
	double epoch_start_s;
	struct evaluation val; /* the last evaluation, after val_step steps */
	int64_t val_step;      /* 0: none yet */
	bool has_metric; /* --save-best's series has a new point since the last check for a checkpoint: metric */
	double metric;
	struct lr_range_test *range; /* of dptrain find lr; NULL: other commands */
	bool stopped; /* on request, or because the time is over */
	int stop_code;
};

static void start_epoch(struct training *t)
{
	t->epoch_start_s = clock_mono_s();
	t->at.epoch_is_open = false;
	t->at.loss_sum = 0;
	t->at.samples = 0;
	t->at.seconds = 0;
}

/* Returns the training seconds of the open epoch, including those before a restart. */
static double epoch_seconds(const struct training *t)
{
	return t->at.seconds + clock_mono_s() - t->epoch_start_s;
}

static bool training_reads_tokens(const struct training *t)
{
	return t->e->subject.data->kind == SAMPLE_TOKENS;
}

/* --save-best chooses by points as they are recorded, but does not read the record. */
static void note_metric(struct training *t, const struct eval_metrics *p)
{
	const char *key = t->e->rank.cfg->save_best;

	if (key && eval_metrics_find(p, key, &t->metric))
		t->has_metric = true;
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

	if (!every || t->at.step % every)
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

/* Evaluates when due, reports the epoch and begins the next one. */
static int end_epoch(struct training *t)
{
	struct epoch_summary s = { .epoch = t->at.epoch + 1 };
	struct eval_metrics points;
	int rc = 0;

	s.seconds = epoch_seconds(t);
	s.train_loss = t->at.loss_sum / (double)t->at.samples;
	s.samples_per_s = (double)t->at.samples / s.seconds;
	s.evaluated = t->e->course.evaluates && !t->e->subject.data->endless;
	if (s.evaluated)
		rc = evaluate_now(t);
	s.val = t->val;
	if (rc || t->stopped)
		return rc;
	points = eval_metrics_of_epoch(&s, training_reads_tokens(t));
	report_epoch(t->report, &points);
	note_metric(t, &points);
	if (t->console)
		console_epoch(t->console, &s);
	t->at.epoch++;
	t->at.in_epoch = 0;
	start_epoch(t);
	return 0;
}

/* Returns true if --save-best's series has its best value so far; the same on every rank. */
static bool is_best(struct training *t)
{
	const double value = t->metric;
	bool less, has = t->has_metric;

	t->has_metric = false;
	if (!has || isnan(value))
		return false;
	less = series_best(t->e->rank.cfg->save_best)->best == SERIES_BEST_LESS;
	if (t->at.has_best && (less ? value >= t->at.best : value <= t->at.best))
		return false;
	t->at.has_best = true;
	t->at.best = value;
	t->at.best_step = t->at.step;
	return true;
}

static struct checkpoint_state current_checkpoint_state(const struct training *t)
{
	struct checkpoint_state at = t->at;

	if (at.epoch_is_open)
		at.seconds = epoch_seconds(t);
	return at;
}

static int save_when_due(struct training *t)
{
	const struct run_config *cfg = t->e->rank.cfg;
	struct checkpoint_state at;
	bool best;

	if (!t->e->course.saves)
		return 0;
	best = is_best(t);
	if (!best && (!cfg->save_steps || t->at.step % cfg->save_steps))
		return 0;
	if (!t->saver)
		return 0;
	at = current_checkpoint_state(t);
	return checkpoint_writer_save(t->saver, &at, t->err);
}

static int record_watched_step(struct training *t, const struct step_result *r)
{
	const struct range all = sampler_global(&t->e->course.train, r->in_epoch - 1);
	const struct watch_step s = { step_program(t->e, r->in_epoch), r->step, all.end - all.begin, r->grad_norm,
				      r->loss_scale };

	return watch_record(t->e->watch, report_run(t->report), &s, t->err);
}

/* Skips a step that had no data when an end was requested. */
static void skip_blank_step(struct training *t, int64_t step)
{
	if (!t->stopped && engine_is_root(t->e))
		log_info("step %lld was still waiting for data and is skipped", (long long)step);
	t->stopped = true;
}

/* Records a finished step, checks it, and runs the evaluations and checkpoints that are due. */
static int after_step(struct training *t, const struct step_result *r)
{
	int rc = 0;

	if (r->blank) {
		skip_blank_step(t, r->step);
		return 0;
	}
	t->at.step = r->step;
	t->at.in_epoch = r->in_epoch;
	t->at.epoch_is_open = true;
	t->at.evaluation_is_open = t->e->rank.cfg->eval_steps && r->step % t->e->rank.cfg->eval_steps == 0;
	if (isfinite(r->loss)) {
		t->at.loss_sum += r->loss_sum;
		t->at.samples += r->count;
	}
	report_step(t->report, r);
	if (trace_on(t->e->trace))
		trace_report_step(t->e->trace, report_run(t->report), r->step, t->e->mark_s);
	if (watch_due(t->e->watch, r->step))
		rc = record_watched_step(t, r);
	if (t->console)
		console_step(t->console, r);
	test_hooks_after_step(&t->e->hooks, t->e->rank.seat, r->step);
	if (!rc && !t->range) /* its loss is meant to diverge */
		rc = nonfinite_search_check(t->e, r, t->err);
	if (!rc && !t->range)
		rc = loss_spike_check(t->e, report_run(t->report), r, t->err);
	if (rc)
		return rc;
	if (r->step == 1 && t->e->rank.cfg->dump_grads)
		rc = files_save_grads(&t->e->tensors, step_program(t->e, 1)->graph, t->e->rank.cfg->dump_grads,
				      t->err);
	if (rc)
		return rc;
	t->stopped |= r->stop || (t->range && lr_range_add(t->range, r->lr, r->loss));
	if (!t->stopped)
		rc = evaluate_when_due(t);
	if (!rc && r->epoch_ends && !t->stopped)
		rc = end_epoch(t);
	return rc || t->stopped ? rc : save_when_due(t);
}

/* Runs what was due after the last step of a resumed run when it was stopped. */
static int run_overdue_tasks(struct training *t)
{
	bool evaluates = t->at.evaluation_is_open,
	     ends = t->at.epoch_is_open && t->at.in_epoch == t->e->course.steps_per_epoch;
	int rc = evaluates ? evaluate_when_due(t) : 0;

	if (!rc && ends && !t->stopped)
		rc = end_epoch(t);
	return rc || t->stopped || !(evaluates || ends) ? rc : save_when_due(t);
}

/* Returns true if a task is due after that step, which must be over and the last one begun. */
static bool is_due(const struct training *t, int64_t step)
{
	const struct run_config *cfg = t->e->rank.cfg;
	const struct train_schedule *c = &t->e->course;

	return (cfg->eval_steps && step % cfg->eval_steps == 0) || (cfg->save_steps && step % cfg->save_steps == 0) ||
	       (cfg->dump_grads && step == 1) || step % c->steps_per_epoch == 0 || step >= c->steps_end || t->range;
}

/* Handles finished steps; all: leaves none in progress. */
static int finish_steps(struct training *t, bool all)
{
	struct step_result r;
	int rc;

	while ((rc = step_end(t->e, all, &r, t->err)) == 1) {
		rc = after_step(t, &r);
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

static int run_training_steps(struct training *t)
{
	struct engine *e = t->e;
	int begun = 1, rc = engine_begin(e, t->err);

	t->epoch_start_s = clock_mono_s();
	if (!rc)
		rc = run_overdue_tasks(t);
	while (!rc && begun && e->step < e->course.steps_end && !t->stopped) {
		begun = begin_step(t);
		if (!begun)
			skip_blank_step(t, e->step + 1);
		rc = begun < 0 ? begun : finish_steps(t, is_due(t, e->step));
	}
	return rc ? rc : finish_steps(t, true);
}

static int save_weights(struct training *t, const char *path, struct err *err)
{
	const struct files_weights w = { &t->e->tensors, &t->e->subject, t->e->rank.cfg };

	return files_save_weights(&w, path, err);
}

static int save_requested_files(struct training *t)
{
	const struct run_config *cfg = t->e->rank.cfg;
	int rc = 0;

	if (cfg->save_weights) {
		rc = evaluate_share_stats(t->e, t->err);
		if (!rc)
			rc = save_weights(t, cfg->save_weights, t->err);
	}
	if (!rc && cfg->save_outputs && !t->stopped)
		rc = evaluate_save_outputs(t->e, cfg->save_outputs, t->err);
	return rc;
}

/* Returns the exit code of a rank stopped by that signal; the launcher decides for its own ranks. */
static int exit_code_of_signal(int signal_number, bool saved)
{
	if (signal_number == 0 || signal_number == SIGINT)
		return 130;
	return saved ? RANK_CONTEXT_PREEMPTED : 1;
}

static int run_test_only(struct training *t)
{
	struct epoch_summary s = { .epoch = 1, .evaluated = true };
	int rc = evaluate_run(t->e, NULL, &s.val, t->err);

	t->stopped = s.val.stopped;
	t->stop_code = exit_code_of_signal(rank_context_stop(t->e->rank.seat), false);
	if (rc || t->stopped)
		return rc;
	if (t->console)
		console_evaluation(t->console, &s.val);
	return save_requested_files(t);
}

/* Writes the last checkpoint; returns true if rank 0 has it. */
static bool save_last(struct training *t)
{
	struct checkpoint_state at = current_checkpoint_state(t);
	struct err err = ERR_INIT;

	if (!t->e->course.saves)
		return false;
	if (!(t->saver ? checkpoint_writer_finish(t->saver, &at, &err) : tensors_help(&t->e->tensors, &err)))
		return t->saver != NULL;
	log_warn("no checkpoint of step %lld: %s", (long long)at.step, err.text);
	return false;
}

/* Writes weights.safetensors into the run's folder. */
static int save_final_weights(struct training *t, struct err *err)
{
	char path[4200];

	if (!t->e->course.saves)
		return 0;
	snprintf(path, sizeof(path), "%s/weights.safetensors", report_dir(t->report));
	return save_weights(t, path, err);
}

/* Ends a stopped run. All ranks exit with the same code, whichever of them received the signal. */
static int end_stopped(struct training *t)
{
	struct comm *c = rank_comm(&t->e->rank);
	int64_t *all = calloc((size_t)c->world * 2, sizeof(*all));
	struct err ignored = ERR_INIT;
	int signal_number = 0, rc;

	if (!all)
		return err_set(t->err, ERR_NOMEM, "out of memory: end of the run");
	all[2 * c->rank] = rank_context_stop(t->e->rank.seat);
	all[2 * c->rank + 1] = save_last(t);
	rc = c->ops->all_gather(c, all, 2 * sizeof(*all), t->err);
	for (int r = 0; r < c->world; r++)
		if (all[2 * r] && signal_number != SIGINT)
			signal_number = (int)all[2 * r];
	t->stop_code = exit_code_of_signal(signal_number, all[1]);
	if (!signal_number) /* its time was over */
		t->stopped = false;
	free(all);
	if (!rc && save_final_weights(t, &ignored)) /* the checkpoint has them too */
		log_warn("%s", ignored.text);
	return rc;
}

static int end_finished(struct training *t)
{
	int rc = save_requested_files(t);

	save_last(t);
	return rc ? rc : save_final_weights(t, t->err);
}

/* Opens the tracked run and the checkpoint writer. */
static int open_record(struct training *t)
{
	struct engine *e = t->e;
	int rc;

	atomic_store(&rank_context_own(e->rank.seat)->idle, 0);
	rc = report_open(&t->report, e, &t->resume, t->err);
	if (rc)
		return rc;
	if (t->resume.loads)
		t->at = t->resume.at;
	snprintf(t->at.run_id, sizeof(t->at.run_id), "%s", report_run_id(t->report));
	snprintf(t->at.model, sizeof(t->at.model), "%s", e->rank.cfg->model);
	snprintf(t->at.data_hash, sizeof(t->at.data_hash), "%s", e->subject.data->hash);
	t->at.segment = report_segment(t->report);
	t->at.world = e->rank.seat->world;
	t->at.global_batch = e->rank.cfg->global_batch_size;
	t->at.seed = (uint64_t)e->rank.cfg->seed;
	if (e->course.saves && (engine_is_root(e) || e->rank.saving))
		rc = checkpoint_writer_open(&t->saver, e, t->report,
					    t->resume.loads && t->resume.reopens ? t->at.step : -1, t->err);
	return rc;
}

/* Loads the checkpoint that --resume selects; draws initial values where there is none. */
static int restore_state(struct training *t)
{
	struct engine *e = t->e;
	int rc = resume_open(&t->resume, &e->rank, &e->subject, &e->tensors, t->err);

	if (!rc && e->rank.cfg->resume && !t->resume.loads)
		rc = draw_values(&e->tensors, e->rank.cfg, e->subject.model, t->err);
	if (!rc)
		e->step = t->resume.at.step;
	return rc;
}

/* Other commands that train print their own output. */
static bool has_console(const struct run_config *cfg)
{
	return cfg->command != COMMAND_DOCTOR && cfg->command != COMMAND_FIND;
}

static int open_cached_step(struct training *t)
{
	return t->e->rank.cfg->command == COMMAND_DOCTOR ? cached_step_new(&t->e->bare, t->err) : 0;
}

static int open_range(struct training *t)
{
	if (!config_finds(t->e->rank.cfg, "lr"))
		return 0;
	t->range = calloc(1, sizeof(*t->range));
	return t->range ? 0 : err_set(t->err, ERR_NOMEM, "out of memory: losses by learning rate");
}

/* Runs after all results are saved, because it changes the parameters. */
static int record_cached_step(struct training *t)
{
	double seconds;
	int rc = t->e->bare ? cached_step_run(t->e, &seconds, t->err) : 0;

	if (!rc && t->e->bare && t->at.step && !isnan(seconds))
		report_bare(t->report, t->at.step, seconds);
	return rc;
}

/* Records the answer of find lr as a text of the run: rank 0. */
static void record_range(struct training *t)
{
	struct buf text;

	buf_init(&text, RANGE_TEXT_MAX);
	lr_range_sentence(&text, t->range);
	buf_addc(&text, '\0');
	if (engine_is_root(t->e) && !buf_failed(&text))
		dptrack_text(report_run(t->report), t->at.step, "find/answer", text.data);
	buf_done(&text);
}

/* Restores the state, opens the record, trains, and saves the results. */
static int run_training(struct training *t)
{
	int rc;

	if (engine_is_root(t->e) && has_console(t->e->rank.cfg)) {
		t->console = console_new(t->e);
		if (!t->console)
			return err_set(t->err, ERR_NOMEM, "out of memory: console");
	}
	rc = restore_state(t);
	if (!rc)
		rc = open_range(t);
	if (!rc)
		rc = open_cached_step(t);
	if (rc)
		return rc;
	rc = t->e->rank.cfg->test_only ? 0 : open_record(t);
	if (!rc && engine_is_root(t->e))
		rc = files_check(t->e->rank.cfg, t->err); /* some may be in the runs' folder, which exists now */
	if (rc)
		return rc;
	if (t->e->rank.cfg->test_only)
		return run_test_only(t);
	if (t->console && t->resume.loads && t->at.step >= t->e->course.steps_end)
		log_info("nothing left to train: %lld steps are done; raise --epochs, --max-steps or --stop-epoch to "
			 "continue",
			 (long long)t->at.step);
	if (t->console)
		console_heading(t->console, report_dir(t->report));
	rc = run_training_steps(t);
	if (t->console)
		console_table(t->console);
	if (rc)
		return rc;
	if (t->range && (t->range->exploded > 0 || t->at.step == t->e->course.steps_end)) /* not interrupted */
		record_range(t);
	report_memory(t->report, t->at.step);
	if (t->console)
		console_memory(t->console);
	rc = t->stopped ? end_stopped(t) : end_finished(t);
	return rc || t->stopped ? rc : record_cached_step(t);
}

static enum dptrack_status training_status(const struct training *t, int rc)
{
	if (rc)
		return DPTRACK_FAILED;
	if (!t->stopped)
		return DPTRACK_FINISHED;
	return t->stop_code == RANK_CONTEXT_PREEMPTED ? DPTRACK_PREEMPTED : DPTRACK_KILLED;
}

int train_main(const struct job *job, struct rank_context *seat)
{
	struct err err = ERR_INIT;
	struct training t = { .err = &err, .resume = { .lock_fd = -1 } };
	int rc, code = 0;

	atomic_store(&rank_context_own(seat)->idle, 1);
	rc = engine_open(&t.e, job, seat, &err);
	if (!rc)
		rc = run_training(&t);
	if (rc)
		report_notices(t.report); /* names the unreadable samples that caused the error */
	if (rc)
		code = rank_context_fail(seat, &err);
	else if (t.stopped)
		code = t.stop_code;
	/* the other ranks do not know of this failure yet */
	if (rc && t.e && err.code != ERR_PEER && err.code != ERR_CANCELED)
		rank_abort(&t.e->rank);
	checkpoint_writer_close(t.saver);
	report_close(t.report, training_status(&t, rc));
	resume_close(&t.resume);
	free(t.range);
	console_free(t.console);
	engine_close(t.e);
	return code;
}
