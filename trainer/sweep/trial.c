/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c: finds the run of a trial by its name, and reads it with the tracking library. */
#include "trainer/sweep/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/dptrack.h"
#include "tracker/insight/goal.h"

#define PARENT_TAG "mlflow.parentRunId" /* the page and MLflow's clients nest runs by it */

struct trial_reading {
	const struct trial_place *place;
	struct trial_known *known;
	const struct trial_taker *taker;
};

static void pass_metric_point(void *user, const struct dptrack_point *p)
{
	struct trial_reading *r = user;

	if (p->rank == -1 && !strcmp(p->key, r->place->metric))
		r->taker->take(r->taker->user, p->step, p->value);
}

static void note_parent_tag(void *user, enum dptrack_fact kind, const char *key, const char *value)
{
	struct trial_reading *r = user;

	(void)value;
	r->known->tagged |= kind == DPTRACK_FACT_TAG && !strcmp(key, PARENT_TAG);
}

int trial_read(struct trial_known *ret, const struct trial_place *place, const char *name,
	       const struct trial_taker *taker, struct err *err)
{
	struct trial_reading r = { place, ret, taker };
	const struct dptrack_reader reader = { .user = &r, .point = pass_metric_point, .fact = note_parent_tag };
	struct dptrack_error error = { 0, "" };
	struct dptrack_found found;
	int code = dptrack_find(&found, &(struct dptrack_run_opts){ .runs_dir = place->runs_dir,
								    .experiment = place->experiment, .run_name = name },
				&error);

	memset(ret, 0, sizeof(*ret));
	if (code == DPTRACK_NOENT)
		return 0;
	ret->begun = true;
	if (!code) {
		memcpy(ret->id, found.id, sizeof(ret->id));
		memcpy(ret->dir, found.dir, sizeof(ret->dir));
		code = dptrack_read(found.dir, &reader, &error);
	}
	return code && code != DPTRACK_NOENT ? err_set(err, ERR_USAGE, "trial %s: %s", name, error.text) : 0;
}

void trial_tag(const struct trial_known *known, const struct trial_place *place, const char *name)
{
	struct dptrack_run *run;
	struct dptrack_error error = { 0, "" };
	char best_tag[600];
	/* opened as another process of its first segment */
	const struct dptrack_run_opts o = { .runs_dir = place->runs_dir, .experiment = place->experiment,
					    .run_name = name, .run_id = known->id, .role = DPTRACK_LAUNCHER };

	if (dptrack_run_open(&run, &o, &error)) {
		log_warn("trial %s: cannot tag it with its sweep: %s", name, error.text);
		return;
	}
	snprintf(best_tag, sizeof(best_tag), GOAL_TAG "%s", place->metric);
	dptrack_tag(run, PARENT_TAG, place->parent);
	dptrack_tag(run, best_tag, place->best);
	dptrack_run_close(run, DPTRACK_RUNNING);
}

int trial_wait(const char *log, double wait_s, struct err *err)
{
	double until = clock_mono_s() + wait_s;
	int fd = open(log, O_RDONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "cannot open %.300s", log);
	while (!rc && flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			rc = err_set_errno(err, errno, "cannot lock %.300s", log);
		else if (clock_mono_s() >= until)
			rc = err_set(err, ERR_BUSY,
				     "%.300s: a process of an earlier launcher still writes it: stop it, "
				     "or wait until it ends", log);
		else
			clock_sleep_s(0.02);
	}
	close(fd);
	return rc;
}

/* Never returns. The log file stays locked until the last process of the trial ends. */
static void exec_trial(char *const argv[], const char *log, pid_t parent)
{
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1); /* the parent ended before prctl */
	setpgid(0, 0);	  /* Ctrl-C reaches only the sweep, which stops its trials */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(1);
	execv("/proc/self/exe", argv);
	_exit(1);
}

pid_t trial_start(char *const argv[], const char *log, struct err *err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		exec_trial(argv, log, parent);
	return pid > 0 ? pid : err_set_errno(err, errno, "cannot start dptrain");
}

void trial_last_words(const char *log, char *ret, size_t n)
{
	FILE *f = fopen(log, "re");
	char line[1024];

	ret[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0])
			snprintf(ret, n, "%s", line);
	}
	if (f)
		fclose(f);
}
