/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: what several subcommands share. A child has its own process group, so a signal from the terminal arrives
 * here once and is forwarded. */
#include "trainer/tools/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"

struct child_process {
	pid_t pid;
	int out;	 /* its stdout */
	int signals;	 /* a signalfd */
	sigset_t before; /* signals blocked before */
};

/* Never returns. */
static void exec_child(const struct child_process *c, char *const *argv, int out)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	if (dup2(out, STDOUT_FILENO) >= 0)
		execv("/proc/self/exe", argv);
	log_error("cannot start dptrain: %s", strerror(errno));
	_exit(1);
}

static void forward_signal(const struct child_process *c)
{
	struct signalfd_siginfo info;

	if (read(c->signals, &info, sizeof(info)) == sizeof(info))
		kill(c->pid, (int)info.ssi_signo);
}

static int read_child_output(const struct child_process *c, struct buf *out, struct err *err)
{
	struct pollfd ends[] = { { c->out, POLLIN, 0 }, { c->signals, POLLIN, 0 } };
	char piece[65536];
	ssize_t n = 1;

	while (n > 0 || (n < 0 && errno == EINTR)) {
		n = poll(ends, 2, -1);
		if (n > 0 && ends[1].revents)
			forward_signal(c);
		if (n <= 0 || !ends[0].revents)
			continue;
		n = read(c->out, piece, sizeof(piece));
		if (n > 0)
			buf_add(out, piece, (size_t)n);
	}
	if (n < 0)
		return err_set_errno(err, errno, "cannot read the output of dptrain");
	return buf_failed(out) ? err_set(err, ERR_LIMIT, "the output of dptrain is too long") : 0;
}

static int start_child(struct child_process *c, char *const *argv, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "cannot create a pipe");
	c->out = ends[0];
	c->pid = fork();
	if (c->pid == 0)
		exec_child(c, argv, ends[1]);
	close(ends[1]);
	return c->pid < 0 ? err_set_errno(err, errno, "cannot start dptrain") : 0;
}

int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err)
{
	struct child_process c = { .pid = -1, .out = -1 };
	sigset_t stops;
	int status = 0, rc;

	rank_context_stop_signals(&stops);
	sigprocmask(SIG_BLOCK, &stops, &c.before);
	c.signals = signalfd(-1, &stops, SFD_NONBLOCK | SFD_CLOEXEC);
	rc = c.signals < 0 ? err_set_errno(err, errno, "cannot receive signals") : start_child(&c, argv, err);
	if (!rc)
		rc = read_child_output(&c, out, err);
	if (c.out >= 0)
		close(c.out);
	while (c.pid > 0 && waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (c.signals >= 0)
		close(c.signals);
	sigprocmask(SIG_SETMASK, &c.before, NULL);
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return rc;
}

/* ---- its steps ---- */

static double list_number_at(json_t *list, size_t i)
{
	return json_number_value(json_array_get(list, i));
}

static void read_child_step(json_t *root, size_t i, struct step_time_step *s)
{
	json_t *phases = json_object_get(root, "all_phases");
	double known = 0;

	*s = (struct step_time_step){ .step = (int64_t)i + 1 };
	s->samples = json_number_value(json_object_get(root, "global_batch_size"));
	s->seconds = list_number_at(json_object_get(root, "all_step_seconds"), i);
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		if (k == STEP_TIME_other)
			continue;
		s->phase[k] = list_number_at(json_object_get(phases, step_time_phase_name((enum step_time_phase)k)), i);
		known += s->phase[k];
	}
	s->phase[STEP_TIME_other] = s->seconds - known;
}

int child_pace(const struct buf *text, struct step_time *ret, struct err *err)
{
	json_t *root = json_loadb(text->data ? text->data : "", text->len, 0, NULL);
	size_t n = json_array_size(json_object_get(root, "all_step_seconds"));
	struct step_time_step *steps = mem_array(n + 1, sizeof(*steps));
	int rc = 0;

	if (!n)
		rc = err_set(err, ERR_CORRUPT, "dptrain printed no steps");
	for (size_t i = 0; !rc && i < n; i++)
		read_child_step(root, i, &steps[i]);
	if (!rc)
		rc = step_time_of(steps, n, INT64_MIN, ret, err);
	free(steps);
	json_decref(root);
	return rc;
}

/* ---- its run ---- */

int recorded_run(const struct job *job, const char *run_id, struct dptrack_found *ret, struct err *err)
{
	const struct dptrack_run_opts o = { .runs_dir = job->cfg->runs_dir, .run_id = run_id };
	struct dptrack_error error = { 0, "" };

	if (dptrack_find(ret, &o, &error))
		return err_set(err, ERR_IO, "cannot find the recorded run: %s", error.text);
	return 0;
}
