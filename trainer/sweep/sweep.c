/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c: keeps --max-parallel trials running, and records the outcome of each in the sweep's run. */
#include "trainer/sweep/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/dptrack.h"
#include "tracker/mem/mem.h"
#include "trainer/state/resume.h"

#define WORDS_MAX 256
#define EXIT_REFUSED 2 /* bad usage or input */
#define EXIT_PREEMPTED 75
#define TRIES_MAX 3	 /* starts of a trial that something else stopped */
#define LOCK_WAIT_S 60.0 /* lets a trial whose launcher was killed write its checkpoint */

struct trial_process {
	pid_t pid;
	size_t trial;
	int rung;
};

struct sweep_state {
	const struct run_config *cfg;
	const char *program;
	struct sweep_plan plan;
	struct trial_place place;
	struct asha asha;
	int *tries; /* by trial */
	struct trial_process *running;
	size_t n_running;
	int64_t max_parallel;
	struct dptrack_run *run; /* the sweep's own */
	char id[33], dir[4096];
	char sha256[65]; /* checksum of the settings at its start; "": not recorded yet */
	int lock_fd;
	bool ending; /* start no more trials */
};

static volatile sig_atomic_t asked_to_end;

static void note_stop_signal(int number)
{
	asked_to_end = number;
}

static void name_trial(const struct sweep_state *s, size_t trial, char to[600])
{
	snprintf(to, 600, "%.500s-%03zu", s->plan.name, trial);
}

static void trial_log_path(const struct sweep_state *s, size_t trial, char to[4200])
{
	snprintf(to, 4200, "%s/trial-%03zu.log", s->dir, trial);
}

static void describe_trial(const struct sweep_state *s, size_t trial, struct buf *to)
{
	char value[SPACE_VALUE_BYTES];

	for (size_t i = 0; i < space_params(s->plan.space); i++) {
		space_value(s->plan.space, s->plan.grid, trial, i, value);
		buf_addf(to, "%s%s %s", i ? ", " : "", space_name(s->plan.space, i), value);
	}
}

/* --- results ---------------------------------------------------------------------------------------------------- */

struct trial_results {
	const struct sweep_plan *plan;
	double value[ASHA_RUNGS], last;
	bool has[ASHA_RUNGS], any;
};

static void keep_metric_value(void *user, int64_t step, double value)
{
	struct trial_results *r = user;

	r->last = value;
	r->any = true;
	for (int i = 0; i < r->plan->rungs; i++)
		if (r->plan->rungs > 1 && r->plan->epochs[i] == step) {
			r->value[i] = value;
			r->has[i] = true;
		}
}

/* Reads the rungs of a trial from its journals. ended: it ran to its end, which is the one rung of a plain search. */
static int read_trial_results(struct sweep_state *s, size_t trial, bool ended, struct err *err)
{
	struct trial_results r = { .plan = &s->plan };
	struct asha_trial *t = &s->asha.trials[trial];
	struct trial_known known;
	char name[600];
	int rc;

	name_trial(s, trial, name);
	rc = trial_read(&known, &s->place, name, &(struct trial_taker){ keep_metric_value, &r }, err);
	if (rc)
		return rc;
	if (s->plan.rungs == 1 && ended && r.any) {
		r.value[0] = r.last;
		r.has[0] = true;
	}
	for (t->rungs = 0; t->rungs < s->plan.rungs && r.has[t->rungs]; t->rungs++)
		t->value[t->rungs] = r.value[t->rungs];
	if (known.begun && !known.tagged && ended)
		trial_tag(&known, &s->place, name);
	return 0;
}

/* Tags of the sweep's run hold the outcome of trials: "trial/007" = "ended", or why it failed. */
static void read_sweep_fact(void *user, enum dptrack_fact kind, const char *key, const char *value)
{
	struct sweep_state *s = user;
	unsigned long trial;

	if (kind == DPTRACK_FACT_PARAM && !strcmp(key, "sweep.sha256"))
		snprintf(s->sha256, sizeof(s->sha256), "%s", value);
	if (kind != DPTRACK_FACT_TAG || strncmp(key, "trial/", 6))
		return;
	trial = strtoul(key + 6, NULL, 10);
	if (trial >= s->asha.count)
		return;
	s->asha.trials[trial].failed = !strncmp(value, "failed", 6);
	s->asha.trials[trial].running = !strncmp(value, "ended", 5); /* until recall_trials reads its journals */
}

static void tag_trial_outcome(struct sweep_state *s, size_t trial, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "trial/%03zu", trial);
	dptrack_tag(s->run, key, what);
	dptrack_flush(s->run, 5);
}

/* Opens the run of the sweep's name, or creates it, and locks its folder. */
static int open_sweep_run(struct sweep_state *s, struct err *err)
{
	struct dptrack_run_opts o = { .runs_dir = s->place.runs_dir, .experiment = s->place.experiment,
				      .run_name = s->plan.name };
	const struct dptrack_reader reader = { .user = s, .fact = read_sweep_fact };
	struct dptrack_error error = { 0, "" };
	struct dptrack_found found;
	bool there = !dptrack_find(&found, &o, &error);
	int rc = 0;

	if (there) {
		snprintf(s->dir, sizeof(s->dir), "%s", found.dir);
		rc = resume_lock(&s->lock_fd, s->dir, 1, err);
		if (!rc && dptrack_read(found.dir, &reader, &error))
			rc = err_set(err, ERR_USAGE, "%s", error.text);
	}
	if (!rc && there && s->sha256[0] && strcmp(s->sha256, s->plan.sha256))
		rc = err_set(err, ERR_USAGE, "sweep %.200s: was started with other settings than the file has: change "
			     "its name, or restore the file", s->plan.name);
	if (rc)
		return rc;
	o.run_id = there ? found.id : NULL;
	o.reopen = there;
	if (dptrack_run_open(&s->run, &o, &error))
		return err_set(err, ERR_IO, "%s", error.text);
	snprintf(s->id, sizeof(s->id), "%s", dptrack_run_id(s->run));
	snprintf(s->dir, sizeof(s->dir), "%s", dptrack_run_dir(s->run));
	s->place.parent = s->id;
	dptrack_param(s->run, "sweep.sha256", s->plan.sha256);
	dptrack_param(s->run, "sweep.metric", s->plan.metric);
	dptrack_param_i64(s->run, "sweep.trials", (int64_t)s->plan.trials);
	dptrack_flush(s->run, 5);
	return there ? 0 : resume_lock(&s->lock_fd, s->dir, 1, err);
}

static int recall_trials(struct sweep_state *s, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->asha.count && !rc; i++) {
		bool ended = s->asha.trials[i].running;

		s->asha.trials[i].running = false;
		rc = read_trial_results(s, i, ended, err);
	}
	return rc;
}

/* --- processes -------------------------------------------------------------------------------------------------- */

struct command_words {
	struct buf text; /* the words, each with its NUL */
	size_t at[WORDS_MAX], n;
	char *argv[WORDS_MAX + 1];
};

static void add_command_word(struct command_words *w, const char *text)
{
	if (w->n < WORDS_MAX) {
		w->at[w->n++] = w->text.len;
		buf_add(&w->text, text, strlen(text) + 1);
	}
}

/* Adds "--name=value", which a yes or no may have, too; "--name" or "--no-name"; or "-b" and its value. */
static void add_command_flag(struct command_words *w, const char *name, const char *value, bool is_bool)
{
	const bool is_long = name[0] && name[1], joined = is_long && !is_bool;

	if (w->n == WORDS_MAX)
		return;
	w->at[w->n++] = w->text.len;
	buf_addf(&w->text, "%s%s%s%s%s", is_long ? "--" : "-", is_bool && strcmp(value, "true") ? "no-" : "", name,
		 joined ? "=" : "", joined ? value : "");
	buf_add(&w->text, "", 1);
	if (!is_long && !is_bool)
		add_command_word(w, value);
}

static void add_command_json(struct command_words *w, const char *name, json_t *value)
{
	char number[64];

	if (json_is_boolean(value)) {
		add_command_flag(w, name, json_is_true(value) ? "true" : "false", true);
		return;
	}
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		snprintf(number, sizeof(number), "%.15g", json_number_value(value));
	add_command_flag(w, name, json_is_string(value) ? json_string_value(value) : number, false);
}

static void add_trial_settings(const struct sweep_state *s, size_t trial, struct command_words *w)
{
	char value[SPACE_VALUE_BYTES];

	for (size_t i = 0; i < space_params(s->plan.space); i++) {
		const bool is_bool = space_value(s->plan.space, s->plan.grid, trial, i, value);

		add_command_flag(w, space_name(s->plan.space, i), value, is_bool);
	}
}

/* Builds the command line of a trial up to a rung: the flags of the file, its settings, and those of the sweep. */
static void build_command_line(const struct sweep_state *s, size_t trial, int rung, struct command_words *w)
{
	char name[600], number[32];
	const char *key;
	json_t *value;

	name_trial(s, trial, name);
	add_command_word(w, s->program);
	add_command_word(w, "train");
	json_object_foreach(s->plan.flags, key, value)
		add_command_json(w, key, value);
	if (!json_object_get(s->plan.flags, "threads")) {
		int64_t each = config_cores(s->cfg) / s->max_parallel;

		snprintf(number, sizeof(number), "%" PRId64, each > 0 ? each : 1);
		add_command_flag(w, "threads", number, false);
	}
	add_trial_settings(s, trial, w);
	add_command_flag(w, "runs-dir", s->place.runs_dir, false);
	add_command_flag(w, "experiment", s->place.experiment, false);
	add_command_flag(w, "run-name", name, false);
	add_command_flag(w, "resume", "auto", false);
	if (s->plan.rungs > 1) {
		snprintf(number, sizeof(number), "%" PRId64, s->plan.epochs[rung]);
		add_command_flag(w, "stop-epoch", number, false);
	}
	for (size_t i = 0; i < w->n; i++)
		w->argv[i] = w->text.data + w->at[i];
	w->argv[w->n] = NULL;
}

/* Starts a trial once no process of an earlier launcher writes its log. */
static int start_trial(struct sweep_state *s, size_t trial, int rung, struct err *err)
{
	struct command_words w = { .n = 0 };
	struct buf settings;
	char log[4200];
	pid_t pid = 0;
	int rc;

	trial_log_path(s, trial, log);
	rc = trial_wait(log, LOCK_WAIT_S, err);
	if (rc)
		return rc;
	buf_init(&w.text, 1 << 20);
	buf_init(&settings, 1 << 16);
	build_command_line(s, trial, rung, &w);
	describe_trial(s, trial, &settings);
	if (buf_failed(&w.text) || w.n == WORDS_MAX)
		rc = err_set(err, ERR_LIMIT, "trial: more than %d words on its command line", WORDS_MAX);
	else if ((pid = trial_start(w.argv, log, err)) < 0)
		rc = (int)pid;
	if (!rc) {
		log_info("trial %zu of %zu%s: %s", trial + 1, s->plan.trials, rung ? " continues" : "", settings.data);
		s->running[s->n_running++] = (struct trial_process){ pid, trial, rung };
		s->asha.trials[trial].running = true;
	}
	buf_done(&w.text);
	buf_done(&settings);
	return rc;
}

/* Ends the sweep if a trial is refused before any has a result: the others would fail alike. */
static int refuse_sweep(const struct sweep_state *s, size_t trial, struct err *err)
{
	char log[4200], words[1024];

	trial_log_path(s, trial, log);
	trial_last_words(log, words, sizeof(words));
	return err_set(err, ERR_USAGE, "trial %zu: refused, and no other has a result yet: %s", trial + 1,
		       words[0] ? words : log);
}

/* Records how a trial ended. One that something else stopped may start again from its checkpoint, up to TRIES_MAX. */
static int judge_trial_end(struct sweep_state *s, const struct trial_process *p, int status, struct err *err)
{
	struct asha_trial *t = &s->asha.trials[p->trial];
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	char why[100];

	if (code == 0 && t->rungs > p->rung) {
		tag_trial_outcome(s, p->trial, "ended");
		log_info("trial %zu: %s %.6g", p->trial + 1, s->plan.metric, t->value[p->rung]);
		return 0;
	}
	if (asked_to_end || s->ending || ((code == EXIT_PREEMPTED || code == -1) && ++s->tries[p->trial] < TRIES_MAX))
		return 0;
	if (code == EXIT_REFUSED && asha_best(&s->asha) == s->asha.count)
		return refuse_sweep(s, p->trial, err);
	if (code == 0 && asha_best(&s->asha) == s->asha.count)
		return err_set(err, ERR_USAGE, "trial %zu: recorded no %.60s, and no other has a result yet: choose "
			       "another metric", p->trial + 1, s->plan.metric);
	if (code == 0)
		snprintf(why, sizeof(why), "failed: it has no value of %.60s", s->plan.metric);
	else
		snprintf(why, sizeof(why), "failed: %s %d", code < 0 ? "signal" : "exit code",
			 code < 0 ? WTERMSIG(status) : code);
	t->failed = true;
	tag_trial_outcome(s, p->trial, why);
	log_warn("trial %zu %s; its output is in %s/trial-%03zu.log", p->trial + 1, why, s->dir, p->trial);
	return 0;
}

static int reap_trial(struct sweep_state *s, struct err *err)
{
	int status, rc;
	pid_t pid = waitpid(-1, &status, 0);

	for (size_t i = 0; pid > 0 && i < s->n_running; i++) {
		struct trial_process p = s->running[i];

		if (p.pid != pid)
			continue;
		s->running[i] = s->running[--s->n_running];
		s->asha.trials[p.trial].running = false;
		rc = read_trial_results(s, p.trial, WIFEXITED(status) && !WEXITSTATUS(status), err);
		return rc ? rc : judge_trial_end(s, &p, status, err);
	}
	return 0;
}

static void stop_trials(struct sweep_state *s, struct err *err)
{
	s->ending = true;
	for (size_t i = 0; i < s->n_running; i++)
		kill(s->running[i].pid, SIGTERM);
	while (s->n_running && !reap_trial(s, err))
		;
}

static int run_trials(struct sweep_state *s, struct err *err)
{
	enum asha_next next = ASHA_RUN;
	size_t trial = 0;
	int rung = 0, rc = 0;

	while (!rc && !asked_to_end && next != ASHA_DONE) {
		next = asha_next(&s->asha, &trial, &rung);
		if (next == ASHA_RUN && (int64_t)s->n_running < s->max_parallel)
			rc = start_trial(s, trial, rung, err);
		else if (next != ASHA_DONE)
			rc = reap_trial(s, err);
	}
	if (rc || asked_to_end)
		stop_trials(s, err);
	return rc;
}

/* --- the sweep -------------------------------------------------------------------------------------------------- */

static int report_best_trial(struct sweep_state *s, struct err *err)
{
	size_t best = asha_best(&s->asha);
	struct buf settings;
	double value;

	if (best == s->asha.count)
		return err_set(err, ERR_PEER, "no trial has a value of %s: see their output in %s", s->plan.metric,
			       s->dir);
	value = s->asha.trials[best].value[s->asha.trials[best].rungs - 1];
	buf_init(&settings, 1 << 16);
	describe_trial(s, best, &settings);
	printf("best: trial %zu, %s %.6g: %s\n", best + 1, s->plan.metric, value, settings.data);
	dptrack_log(s->run, (int64_t)s->plan.trials, "sweep/best", value);
	dptrack_note(s->run, settings.data);
	buf_done(&settings);
	return 0;
}

static int prepare_sweep(struct sweep_state *s, struct err *err)
{
	s->asha = (struct asha){ .trials = mem_array(s->plan.trials, sizeof(*s->asha.trials)), .count = s->plan.trials,
				 .rungs = s->plan.rungs, .eta = s->plan.eta, .maximize = s->plan.maximize };
	s->tries = mem_array(s->plan.trials, sizeof(*s->tries));
	s->running = mem_array((size_t)s->max_parallel, sizeof(*s->running));
	s->place = (struct trial_place){ .runs_dir = s->cfg->runs_dir, .metric = s->plan.metric,
					 .best = s->plan.maximize ? "max" : "min",
					 .experiment = config_given(s->cfg, FLAG_experiment) || !s->plan.experiment ?
							       s->cfg->experiment : s->plan.experiment };
	return open_sweep_run(s, err);
}

static void catch_stop_signals(void)
{
	struct sigaction action = { .sa_handler = note_stop_signal }; /* without SA_RESTART: waitpid returns */

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int sweep_main(const struct run_config *cfg, const char *program, struct err *err)
{
	struct sweep_state s = { .cfg = cfg, .program = program, .lock_fd = -1, .max_parallel = cfg->max_parallel };
	int rc;

	if (!cfg->word)
		return err_set(err, ERR_USAGE, "dptrain sweep: FILE is required (--help shows an example)");
	rc = sweep_plan_read(&s.plan, cfg->word, err);
	rc = rc ? rc : prepare_sweep(&s, err);
	catch_stop_signals();
	rc = rc ? rc : recall_trials(&s, err);
	rc = rc ? rc : run_trials(&s, err);
	if (!rc && !asked_to_end)
		rc = report_best_trial(&s, err);
	if (s.run)
		dptrack_run_close(s.run, asked_to_end ? DPTRACK_KILLED : rc ? DPTRACK_FAILED : DPTRACK_FINISHED);
	if (s.lock_fd >= 0)
		close(s.lock_fd);
	free(s.asha.trials);
	free(s.tries);
	free(s.running);
	sweep_plan_done(&s.plan);
	return rc ? rc : asked_to_end ? 130 : 0;
}
