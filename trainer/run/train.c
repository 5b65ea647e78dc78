/* SPDX-License-Identifier: Apache-2.0 */
/* train.c: the training of one rank, from opening to its exit code. */
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/state/initial.h"
#include "trainer/state/tensor_files.h"

#define RANGE_TEXT_MAX 4096

static int save_weights(struct training *t, const char *path, struct err *err)
{
	const struct files_weights w = { &t->e->tensors, &t->e->workload, t->e->rank.cfg };

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
	const struct config_trained *trained = &t->e->rank.cfg->trained;
	int rc = evaluate_run(t->e, NULL, &s.val, t->err);

	if (t->console && trained->class_names && !t->e->workload.data->n_class_names)
		log_warn("%s has no names of classes: its labels are read as those of %s", t->e->workload.data->path,
			 trained->path);
	t->stopped = s.val.stopped;
	t->stop_code = exit_code_of_signal(rank_context_stop(t->e->rank.context), false);
	if (rc || t->stopped)
		return rc;
	report_notices(t->e);
	if (t->console) {
		console_data(t->console);
		console_evaluation(t->console, &s.val);
	}
	rc = save_requested_files(t);
	return rc || isfinite(s.val.loss) ? rc : err_set(t->err, ERR_CANCELED, "the evaluation loss is %g: weights, "
							 "statistics or outputs are not finite", fabs(s.val.loss));
}

/* Writes the last checkpoint; returns true if rank 0 has it. */
static bool save_last(struct training *t)
{
	struct checkpoint_state at = loop_position(t);
	struct err err = ERR_INIT;

	if (!t->e->train_schedule.saves)
		return false;
	if (!(t->saver ? checkpoint_writer_finish(t->saver, &at, &err) : tensors_help(&t->e->tensors, &err)))
		return t->saver != NULL;
	log_warn("no checkpoint of step %lld: %s", (long long)at.step, err.text);
	return false;
}

/* Writes model.safetensors, and a GPT's config.json, into the run's folder; of a run with LoRA its adapter. */
static int save_final_weights(struct training *t, struct err *err)
{
	char path[4200];

	if (!t->e->train_schedule.saves)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", report_dir(t->report),
		 t->e->rank.cfg->lora ? CHECKPOINT_ADAPTER : CHECKPOINT_MODEL);
	return save_weights(t, path, err);
}

/* Ends a stopped run. All ranks exit with the same code, whichever of them received the signal. */
static int end_stopped(struct training *t)
{
	struct comm *c = rank_comm(&t->e->rank);
	int64_t *all = mem_array((size_t)c->world * 2, sizeof(*all));
	struct err ignored = ERR_INIT;
	int signal_number = 0, rc;

	all[2 * c->rank] = rank_context_stop(t->e->rank.context);
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

	atomic_store(&rank_context_own(e->rank.context)->idle, 0);
	rc = report_open(&t->report, e, &t->resume, t->err);
	if (rc)
		return rc;
	if (t->resume.loads)
		t->at = t->resume.at;
	snprintf(t->at.run_id, sizeof(t->at.run_id), "%s", report_run_id(t->report));
	snprintf(t->at.model, sizeof(t->at.model), "%s", e->rank.cfg->model);
	snprintf(t->at.data_hash, sizeof(t->at.data_hash), "%s", e->workload.identity);
	t->at.segment = report_segment(t->report);
	t->at.world = e->rank.context->world;
	t->at.global_batch = e->rank.cfg->global_batch_size;
	t->at.seed = (uint64_t)e->rank.cfg->seed;
	rc = answering_new(&t->answering, e, t->err);
	if (!rc && e->train_schedule.saves && (engine_is_root(e) || e->rank.saving))
		rc = checkpoint_writer_open(&t->saver, e, t->report,
					    t->resume.loads && t->resume.reopens ? t->at.step : -1, t->err);
	return rc;
}

/* Says what of the learning rate may surprise. */
static void describe_learning_rate(const struct training *t)
{
	const struct train_schedule *c = &t->e->train_schedule;
	const bool decays = c->lr.kind != CONFIG_LR_STEP && c->lr.kind != CONFIG_LR_CONSTANT;

	if (t->resume.moved_end && decays)
		log_info("the learning rate follows the new end of training: step %lld has %g",
			 (long long)t->resume.at.step + 1, lr_schedule_at(&c->lr, t->resume.at.step + 1));
	if (c->lr.steps_warmup >= c->steps_total)
		log_warn("the warm-up takes %lld steps, but training has %lld: the learning rate reaches %g of --lr %g",
			 (long long)c->lr.steps_warmup, (long long)c->steps_total,
			 lr_schedule_at(&c->lr, c->steps_total), c->lr.lr);
}

/* Loads the checkpoint that --resume selects; draws initial values where there is none. */
static int restore_state(struct training *t)
{
	struct engine *e = t->e;
	const struct run_config *cfg = e->rank.cfg;
	int rc = engine_is_root(e) && !cfg->test_only ? workload_identify(&e->workload, cfg, t->err) : 0;

	if (!rc)
		rc = resume_open(&t->resume, &e->rank, &e->workload, &e->tensors, t->err);
	if (!rc && cfg->resume && !t->resume.loads)
		rc = draw_values(&e->tensors, cfg, e->workload.model, t->err);
	if (!rc)
		e->step = t->resume.at.step;
	if (!rc && engine_is_root(e) && !cfg->test_only)
		describe_learning_rate(t);
	return rc;
}

/* Other commands that train print their own output. */
static bool has_console(const struct run_config *cfg)
{
	return cfg->command != COMMAND_DOCTOR && cfg->command != COMMAND_FIND;
}

/* Runs after all results are saved, because it changes the parameters. */
static int record_cached_step(struct training *t)
{
	double seconds;
	int rc = t->e->cached ? cached_step_run(t->e, &seconds, t->err) : 0;

	if (!rc && t->e->cached && t->at.step && !isnan(seconds))
		report_cached_step(t->report, t->at.step, seconds);
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

	if (engine_is_root(t->e) && has_console(t->e->rank.cfg))
		t->console = console_new(t->e);
	rc = restore_state(t);
	if (rc)
		return rc;
	if (config_finds(t->e->rank.cfg, "lr"))
		t->range = mem_zalloc(sizeof(*t->range));
	if (t->e->rank.cfg->command == COMMAND_DOCTOR)
		t->e->cached = cached_step_new();
	rc = t->e->rank.cfg->test_only ? 0 : open_record(t);
	if (!rc && engine_is_root(t->e))
		rc = files_check(t->e->rank.cfg, t->err); /* some may be in the runs' folder, which exists now */
	if (rc)
		return rc;
	if (t->e->rank.cfg->test_only)
		return run_test_only(t);
	if (t->console && t->resume.loads && t->at.step >= t->e->train_schedule.steps_end)
		log_info("nothing left to train: %lld steps are done; raise --epochs, --max-steps or --stop-epoch to "
			 "continue",
			 (long long)t->at.step);
	if (t->console)
		console_heading(t->console, report_dir(t->report));
	rc = loop_run(t);
	if (t->console)
		console_table(t->console);
	if (rc)
		return rc;
	if (t->range && (t->range->exploded > 0 || t->at.step == t->e->train_schedule.steps_end)) /* not interrupted */
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

int train_main(const struct job *job, struct rank_context *context)
{
	struct err err = ERR_INIT;
	struct training t = { .err = &err, .resume = { .lock_fd = -1 } };
	int rc, code = 0;

	atomic_store(&rank_context_own(context)->idle, 1);
	rc = engine_open(&t.e, job, context, &err);
	if (!rc)
		rc = run_training(&t);
	if (rc)
		report_notices(t.e); /* names the unreadable samples that caused the error */
	if (rc)
		code = rank_context_fail(context, &err);
	else if (t.stopped)
		code = t.stop_code;
	/* the other ranks do not know of this failure yet */
	if (rc && t.e && err.code != ERR_PEER && err.code != ERR_CANCELED)
		rank_abort(&t.e->rank);
	answering_free(t.answering);
	checkpoint_writer_close(t.saver);
	report_close(t.report, training_status(&t, rc));
	resume_close(&t.resume);
	free(t.range);
	console_free(t.console);
	engine_close(t.e);
	return code;
}
