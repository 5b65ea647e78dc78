/* SPDX-License-Identifier: Apache-2.0 */
/* find.c: `dptrain find lr` reads learning rates and losses from a run's journals through dptrack.h, and then trains
 * with some rates in new processes. `find batch` plans batch sizes, trains with some of them in new processes (`dptrain
 * doctor`, which has the same flags), and reads the noise scale of the job's run. tracker/insight selects the rate and
 * the size. */
#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/base/log.h"
#include "tracker/insight/tuning.h"
#include "tracker/mem/mem.h"
#include "trainer/program/memory.h"
#include "trainer/tools/child.h"
#include "trainer/tools/subcommands.h"

#define SIZE_MOST 1048576
#define SIZE_FIRST 4
#define MEASURE_SECONDS "3"
#define TRIAL_TIMES 3 /* steps of a training of find lr, in those of its range test */
#define DIVERGED 1    /* exit code of a run whose values are not finite */
#define OUTPUT_MAX ((size_t)64 << 20)
#define TEXT_MAX 4096
#define REFUSED 2 /* exit code of a run that its settings or the memory do not allow */

struct batch_finding {
	const struct job *job;
	struct batch_search search;
	int64_t bytes; /* memory of the largest batch on all ranks of this machine */
};

/* ---- the largest ---- */

/* Plans the largest micro-batch of at most `most` samples that fits, without gradient accumulation. */
static int plan_largest_batch(struct batch_finding *f, int64_t most, struct err *err)
{
	struct shared_status shared_status = { .stop_signal = 0 };
	struct run_config cfg = *f->job->cfg;
	struct job job = *f->job;
	struct rank_context context = { .world = cfg.world,
					.local_world = cfg.world,
					.nodes = 1,
					.shm_fd = -1,
					.signal_fd = -1,
					.shared_status = &shared_status };
	struct engine *e;
	int64_t samples;
	int rc;

	cfg.grad_accum_steps = 1;
	cfg.global_batch_size = cfg.batch_size * cfg.world;
	job.cfg = &cfg;
	rc = engine_open_plan(&e, &job, &context, err);
	if (rc)
		return rc;
	samples = e->workload.data->n_samples[SPLIT_TRAIN] / cfg.world;
	f->search.largest =
		memory_largest_batch(&e->rank, &e->workload, samples > 0 && samples < most ? samples : most, &f->bytes);
	engine_close(e);
	return 0;
}

/* ---- the fastest ---- */

/* Builds the command line of another command, with the job's flags and more, up to a NULL; the last of two flags wins.
 * The caller frees it. */
static char **child_command_line(const struct job *job, enum config_command command, const char *const *more)
{
	size_t n = 0, n_more = 0;
	char **argv;

	while (more[n_more])
		n_more++;
	argv = mem_array((size_t)job->argc + n_more + 3, sizeof(*argv));
	argv[n++] = job->argv[0];
	argv[n++] = (char *)(uintptr_t)config_command_name(command);
	argv[n++] = (char *)(uintptr_t) "--experiment=find";
	for (int i = 2; i < job->argc; i++)
		if (job->argv[i] != job->cfg->word && strcmp(job->argv[i], "--json") != 0)
			argv[n++] = job->argv[i];
	for (size_t i = 0; i < n_more; i++)
		argv[n++] = (char *)(uintptr_t)more[i];
	return argv;
}

/* Measures samples per second; *ret_code is the exit code of the child. */
static int measure_batch_size(const struct job *job, int64_t size, double *ret, int *ret_code, struct err *err)
{
	char text[32], name[40], **argv = NULL;
	const char *const more[] = { "--batch-size",  text,	  "--run-name", name, "--seconds",
				     MEASURE_SECONDS, "--no-try", "--json",	NULL };
	struct step_time pace;
	struct buf out;
	int rc;

	snprintf(text, sizeof(text), "%lld", (long long)size);
	snprintf(name, sizeof(name), "batch-%s", text);
	argv = child_command_line(job, COMMAND_DOCTOR, more);
	buf_init(&out, OUTPUT_MAX);
	rc = child_run(argv, &out, ret_code, err);
	if (!rc && !*ret_code)
		rc = child_pace(&out, &pace, err);
	if (!rc && !*ret_code) {
		*ret = 1 / pace.seconds;
		log_info("--batch-size %s: %.4g samples/s", text, *ret);
	}
	buf_done(&out);
	free(argv);
	return rc;
}

/* Measures increasing sizes. The kernels of a run, chosen by time, may need more memory than the plan's: a size that is
 * refused for that ends the search, and the largest is the one before it. */
static int find_fastest_batch(struct batch_finding *f, int *ret_code, struct err *err)
{
	struct batch_search *s = &f->search;
	bool enough = false;
	int rc = 0;

	for (int64_t size = s->largest < SIZE_FIRST ? 1 : SIZE_FIRST; !rc && !enough && size <= s->largest; size *= 2) {
		double rate = 0;

		rc = measure_batch_size(f->job, size, &rate, ret_code, err);
		if (!rc && *ret_code == REFUSED && s->n) {
			*ret_code = 0;
			log_info("--batch-size %lld does not fit with the kernels that its run chose by time",
				 (long long)size);
			return plan_largest_batch(f, size / 2, err);
		}
		if (rc || *ret_code)
			return rc;
		enough = batch_add(s, size, rate);
	}
	return rc;
}

/* ---- the noise ---- */

static void keep_noise_scale(void *user, const struct dptrack_point *p)
{
	double *noise = user;

	if (!strcmp(p->key, "train/noise_scale"))
		*noise = p->value; /* a mean over all steps so far */
}

static int read_noise_scale(struct batch_finding *f, const char *dir, struct err *err)
{
	const struct dptrack_reader reader = { .user = &f->search.noise, .point = keep_noise_scale };
	struct dptrack_error error = { 0, "" };

	f->search.noise = NAN;
	return dptrack_read(dir, &reader, &error) ? err_set(err, ERR_IO, "%s", error.text) : 0;
}

/* ---- output ---- */

static void print_batch_json(const struct batch_finding *f, const char *sentence)
{
	const struct batch_search *s = &f->search;
	const int at = batch_fastest(s);
	json_t *o = json_object(), *sizes = json_array();

	for (int i = 0; i < s->n; i++)
		json_array_append_new(sizes, json_pack("{s:I, s:f}", "batch_size", (json_int_t)s->size[i],
						       "samples_per_s", s->rate[i]));
	json_object_set_new(o, "fastest", at < 0 ? json_null() : json_integer(s->size[at]));
	json_object_set_new(o, "largest", json_integer(s->largest));
	json_object_set_new(o, "largest_bytes", json_integer(f->bytes));
	json_object_set_new(o, "critical", real_or_null(s->noise));
	json_object_set_new(o, "ranks", json_integer(s->ranks));
	json_object_set_new(o, "sentence", json_string(sentence));
	json_object_set_new(o, "sizes", sizes);
	json_print(o, JSON_PRINT_PAGE);
}

static void print_batch_table(const struct batch_finding *f, const char *sentence)
{
	const struct batch_search *s = &f->search;

	printf("%s\n", sentence);
	printf("%12s %12s\n", "batch size", "samples/s");
	for (int i = 0; i < s->n; i++)
		printf("%12lld %12.4g%s\n", (long long)s->size[i], s->rate[i],
		       i == batch_fastest(s) ? "  fastest" : "");
	printf("%12lld %12s  largest that fits, %.0f MiB planned\n", (long long)s->largest, "",
	       (double)f->bytes / 1048576);
}

static int print_batch_answer(const struct batch_finding *f, struct err *err)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	batch_sentence(&text, &f->search);
	buf_addc(&text, '\0');
	if (buf_failed(&text))
		rc = err_nomem(err, "the answer");
	else if (f->job->cfg->json)
		print_batch_json(f, text.data);
	else
		print_batch_table(f, text.data);
	buf_done(&text);
	return rc || !fflush(stdout) ? rc : err_set(err, ERR_IO, "cannot write to stdout");
}

/* dir: of the job's run, which recorded the noise scale. Measures and prints. Returns the exit code (of a child that
 * failed), or a negative code with err. */
static int find_batch(const struct job *job, const char *dir, struct err *err)
{
	struct batch_finding f = { .job = job, .search = { .ranks = job->cfg->world } };
	int code = 0, rc = read_noise_scale(&f, dir, err);

	if (!rc)
		rc = plan_largest_batch(&f, SIZE_MOST, err);
	if (!rc)
		rc = find_fastest_batch(&f, &code, err);
	if (!rc && !code)
		rc = print_batch_answer(&f, err);
	return rc ? rc : code;
}

struct lr_loss_curve { /* by step */
	double lr[LR_RANGE_STEPS_MAX + 1], loss[LR_RANGE_STEPS_MAX + 1];
};

static void keep_lr_and_loss(void *user, const struct dptrack_point *p)
{
	struct lr_loss_curve *c = user;

	if (p->rank >= 0 || p->step < 1 || p->step > LR_RANGE_STEPS_MAX)
		return;
	if (!strcmp(p->key, "train/lr"))
		c->lr[p->step] = p->value;
	else if (!strcmp(p->key, "train/loss"))
		c->loss[p->step] = p->value;
}

static int read_lr_curve(const char *dir, struct lr_range_test *ret, struct err *err)
{
	struct lr_loss_curve *c = mem_zalloc(sizeof(*c));
	const struct dptrack_reader reader = { .user = c, .point = keep_lr_and_loss };
	struct dptrack_error error = { 0, "" };
	int rc = 0;

	if (dptrack_read(dir, &reader, &error))
		rc = err_set(err, ERR_IO, "%s", error.text);
	for (int step = 1; !rc && step <= LR_RANGE_STEPS_MAX && c->lr[step] > 0; step++)
		if (lr_range_add(ret, c->lr[step], c->loss[step]))
			break;
	free(c);
	return rc;
}

struct trial_losses {
	double sum;
	int64_t n, from; /* losses from that step on */
};

static void sum_last_losses(void *user, const struct dptrack_point *p)
{
	struct trial_losses *l = user;

	if (p->rank >= 0 || p->step < l->from || strcmp(p->key, "train/loss") != 0)
		return;
	l->sum += p->value;
	l->n++;
}

/* Reads the mean loss of the last quarter of a training. */
static int read_trial_loss(const struct job *job, const char *name, int64_t steps, double *ret, struct err *err)
{
	struct trial_losses l = { .from = steps - steps / 4 };
	const struct dptrack_reader reader = { .user = &l, .point = sum_last_losses };
	const struct dptrack_run_opts o = { .runs_dir = job->cfg->runs_dir, .experiment = job->cfg->experiment,
					    .run_name = name };
	struct dptrack_error error = { 0, "" };
	struct dptrack_found found;

	if (dptrack_find(&found, &o, &error) || dptrack_read(found.dir, &reader, &error))
		return err_set(err, ERR_IO, "cannot read the training %s: %s", name, error.text);
	*ret = l.n && isfinite(l.sum) ? l.sum / (double)l.n : INFINITY;
	return 0;
}

/* Trains with the rate of the next trial. *ret_code: of a child that failed, except by diverging. */
static int run_lr_trial(const struct job *job, struct lr_trials *t, int *ret_code, struct err *err)
{
	const int64_t steps = TRIAL_TIMES * job->cfg->max_steps;
	char lr[32], text[32], name[40], **argv = NULL;
	const char *const more[] = { "--lr",	   lr,	 "--max-steps",	       text,
				     "--run-name", name, "--save-total-limit", "0",  NULL };
	struct buf out;
	int rc;

	snprintf(lr, sizeof(lr), "%.3g", lr_trials_rate(t, t->n));
	snprintf(text, sizeof(text), "%lld", (long long)steps);
	snprintf(name, sizeof(name), "lr-%s", lr);
	argv = child_command_line(job, COMMAND_TRAIN, more);
	buf_init(&out, OUTPUT_MAX);
	rc = child_run(argv, &out, ret_code, err);
	t->loss[t->n] = INFINITY;
	if (!rc && !*ret_code)
		rc = read_trial_loss(job, name, steps, &t->loss[t->n], err);
	*ret_code = *ret_code == DIVERGED ? 0 : *ret_code;
	if (!rc && !*ret_code)
		log_info("--lr %s: loss %.4g after %s steps", lr, t->loss[t->n], text);
	t->n++;
	buf_done(&out);
	free(argv);
	return rc;
}

/* Trains with rates around the lowest loss of the range test until the best one has worse neighbours. */
static int run_lr_trials(const struct job *job, const struct lr_range_test *r, struct lr_trials *t, int *ret_code,
			 struct err *err)
{
	struct lr_range_answer a;
	int power, rc = 0;

	if (!lr_range_answer(r, &a))
		return 0;
	t->first = a.lowest / 4; /* usually too high: most steps were made with far lower rates */
	while (!rc && !*ret_code && lr_trials_next(t, &power)) {
		t->power[t->n] = power;
		rc = run_lr_trial(job, t, ret_code, err);
	}
	return rc;
}

static void print_lr_json(const struct lr_range_test *r, const struct lr_trials *t, const char *sentence)
{
	json_t *o = json_object(), *curve = json_array(), *trainings = json_array();
	struct lr_range_answer a;
	const bool found = lr_range_answer(r, &a);
	const int best = lr_trials_best(t);

	json_object_set_new(o, "lr", real_or_null(t->n && isfinite(t->loss[best]) ? lr_trials_rate(t, best) : NAN));
	json_object_set_new(o, "lowest", real_or_null(found ? a.lowest : NAN));
	json_object_set_new(o, "steepest", real_or_null(found ? a.steepest : NAN));
	json_object_set_new(o, "exploded", real_or_null(r->exploded > 0 ? r->exploded : NAN));
	json_object_set_new(o, "sentence", json_string(sentence));
	for (int i = 0; i < r->n; i++)
		json_array_append_new(curve, json_pack("{s:f, s:f}", "lr", r->lr[i], "loss", r->loss[i]));
	json_object_set_new(o, "curve", curve);
	for (int i = 0; i < t->n; i++)
		json_array_append_new(trainings, json_pack("{s:f, s:o}", "lr", lr_trials_rate(t, i), "loss",
							   real_or_null(t->loss[i])));
	json_object_set_new(o, "trainings", trainings);
	json_print(o, JSON_PRINT_PAGE);
}

/* Prints the rate with the lowest loss, and what the range test found. */
static int print_lr_answer(const struct job *job, const char *dir, const struct lr_range_test *r,
			   const struct lr_trials *t, struct err *err)
{
	const int best = lr_trials_best(t);
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	if (t->n && !isfinite(t->loss[best]))
		buf_addf(&text, "no learning rate can be recommended: every training failed; ");
	else if (t->n)
		buf_addf(&text, "--lr %.2g: the lowest loss (%.4g) of %d trainings of %lld steps; ",
			 lr_trials_rate(t, best), t->loss[best], t->n, (long long)(TRIAL_TIMES * job->cfg->max_steps));
	lr_range_sentence(&text, r);
	buf_addc(&text, '\0');
	if (buf_failed(&text))
		rc = err_nomem(err, "the answer");
	else if (job->cfg->json)
		print_lr_json(r, t, text.data);
	else
		printf("%s\n%d steps, recorded in %s\n", text.data, r->n, dir);
	buf_done(&text);
	return rc || !fflush(stdout) ? rc : err_set(err, ERR_IO, "cannot write to stdout");
}

static int find_lr(const struct job *job, const char *dir, struct err *err)
{
	struct lr_range_test *r = mem_zalloc(sizeof(*r));
	struct lr_trials t = { .n = 0 };
	int code = 0, rc = read_lr_curve(dir, r, err);

	if (!rc)
		rc = run_lr_trials(job, r, &t, &code, err);
	if (!rc && !code)
		rc = print_lr_answer(job, dir, r, &t, err);
	free(r);
	return rc ? rc : code;
}

int find_main(const struct job *job, const char *run_id, struct err *err)
{
	struct dptrack_found found;
	int rc = recorded_run(job, run_id, &found, err);

	if (rc)
		return rc;
	return config_finds(job->cfg, "batch") ? find_batch(job, found.dir, err) : find_lr(job, found.dir, err);
}
