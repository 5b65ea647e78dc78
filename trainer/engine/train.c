/* train.c: the loop of one rank, from opening to the last word. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "trainer/engine/report.h"

struct training {
	struct engine *e;
	struct report *report;
	struct console *console; /* rank 0 */
	struct err *err;

	/* of the epoch that is under way */
	double epoch_start_s, epoch_loss_sum;
	int64_t epoch_samples;
	bool stopped; /* somebody asked for it */
};

static void start_epoch(struct training *t)
{
	t->epoch_start_s = clock_mono_s();
	t->epoch_loss_sum = 0;
	t->epoch_samples = 0;
}

static int end_epoch(struct training *t, const struct step_result *r)
{
	struct epoch_summary s = { .epoch = r->epoch };
	int rc = 0;

	s.seconds = clock_mono_s() - t->epoch_start_s;
	s.train_loss = t->epoch_loss_sum / (double)t->epoch_samples;
	s.samples_per_s = (double)t->epoch_samples / s.seconds;
	s.evaluated = t->e->data->n_samples[SPLIT_VAL] > 0 && !t->e->data->endless;
	if (s.evaluated)
		rc = evaluate_run(t->e, NULL, &s.val, t->err);
	t->stopped = s.val.stopped;
	if (rc || t->stopped)
		return rc;
	report_epoch(t->report, &s);
	if (t->console)
		console_epoch(t->console, &s);
	start_epoch(t);
	return 0;
}

static int after_step(struct training *t, const struct step_result *r)
{
	t->epoch_loss_sum += r->loss_sum;
	t->epoch_samples += r->count;
	report_step(t->report, r);
	if (t->console)
		console_step(t->console, r);
	if (!isfinite(r->loss))
		return step_explain_nonfinite(t->e, r, t->err);
	if (r->step == 1 && t->e->cfg->dump_grads && engine_is_root(t->e)) {
		int rc = files_save_grads(t->e, t->e->cfg->dump_grads, t->err);

		if (rc)
			return rc;
	}
	if (r->epoch_ends && !r->stop)
		return end_epoch(t, r);
	t->stopped = r->stop;
	return 0;
}

static int run_steps(struct training *t)
{
	struct engine *e = t->e;
	struct step_result r = { .step = 0 };
	int rc = engine_begin(e, t->err);

	start_epoch(t);
	while (!rc && e->step < e->steps_total && !t->stopped) {
		rc = step_run(e, &r, t->err);
		if (rc == 0)
			return 0; /* no more data */
		rc = rc < 0 ? rc : after_step(t, &r);
	}
	return rc;
}

static int save(struct training *t)
{
	const struct run_config *cfg = t->e->cfg;
	int rc = 0;

	if (cfg->save_weights) {
		rc = evaluate_share_stats(t->e, t->err);
		if (!rc && engine_is_root(t->e))
			rc = files_save_weights(t->e, cfg->save_weights, t->err);
	}
	if (!rc && cfg->save_outputs && !t->stopped)
		rc = files_save_outputs(t->e, cfg->save_outputs, t->err);
	return rc;
}

static int test_only(struct training *t)
{
	struct epoch_summary s = { .epoch = 1, .evaluated = true };
	int rc = evaluate_run(t->e, NULL, &s.val, t->err);

	t->stopped = s.val.stopped;
	if (rc || t->stopped)
		return rc;
	if (t->console)
		console_evaluation(t->console, &s.val);
	return save(t);
}

static int run(struct training *t)
{
	int rc;

	if (engine_is_root(t->e)) {
		t->console = console_new(t->e);
		if (!t->console)
			return err_set(t->err, ERR_NOMEM, "out of memory: console");
	}
	if (t->e->cfg->test_only)
		return test_only(t);
	rc = report_open(&t->report, t->e, t->err);
	if (rc)
		return rc;
	if (t->console)
		console_heading(t->console, report_dir(t->report));
	rc = run_steps(t);
	if (t->console)
		console_table(t->console);
	if (!rc)
		rc = save(t);
	return rc;
}

/* The exit code of a rank that was asked to end; the launcher decides for its own ranks. */
static int stop_code(const struct seat *seat)
{
	int signal_number = seat_stop(seat);

	return signal_number == 0 || signal_number == SIGINT ? 130 : 1;
}

int train_main(const struct job *job, struct seat *seat)
{
	struct err err = ERR_INIT;
	struct training t = { .err = &err };
	int rc = engine_open(&t.e, job, seat, &err), code = 0;

	if (!rc)
		rc = run(&t);
	if (rc)
		code = seat_fail(seat, &err);
	else if (t.stopped)
		code = stop_code(seat);
	if (rc && t.e && err.code != ERR_PEER && err.code != ERR_CANCELED) /* what the others do not know yet */
		for (int i = 0; i < SEAT_LANES; i++)
			t.e->lane[i]->ops->abort(t.e->lane[i]);
	report_close(t.report, rc ? DPTRACK_FAILED : t.stopped ? DPTRACK_KILLED : DPTRACK_FINISHED);
	console_free(t.console);
	engine_close(t.e);
	return code;
}
