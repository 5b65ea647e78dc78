/* SPDX-License-Identifier: Apache-2.0 */
/* child_ranks.c: forks, pipes and heartbeats of ranks. A pipe is read until it is empty; its last lines are kept,
 * because they may explain why the rank died. */
#include "trainer/launch/child_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"

#define SILENT_S 3.0
/* a longer time between two checks counts as this: a whole job that was stopped is no failure */
#define CHECK_MOST_S 1.0
#define FLIGHT_LINES 4 /* lines of a rank's last collectives */
#define RELAY_LINES 12
#define RELAY_LINE_BYTES 400 /* longer lines are split */

struct output_relay {
	int fd;			     /* the pipe; -1: it has ended, or none yet */
	int rank;		     /* prefix of each line; -1: no prefix */
	char line[RELAY_LINE_BYTES]; /* incomplete line */
	size_t line_len;
	char tail[RELAY_LINES][RELAY_LINE_BYTES];
	int n_tail;
};

struct child_rank {
	pid_t pid;
	bool ended;
	uint32_t beats; /* heartbeat counter, as last read */
	double silent_s;
	struct output_relay relay; /* relays its stderr */
};

/* ---- output ---- */

static void begin_relay(struct output_relay *r, int fd, int rank)
{
	*r = (struct output_relay){ .fd = fd, .rank = rank };
}

static void print_relayed_line(struct output_relay *r)
{
	r->line[r->line_len] = '\0';
	if (r->rank >= 0)
		fprintf(stderr, "[rank %d] %s\n", r->rank, r->line);
	else
		fprintf(stderr, "%s\n", r->line);
	if (r->n_tail == RELAY_LINES) {
		memmove(r->tail[0], r->tail[1], sizeof(r->tail[0]) * (RELAY_LINES - 1));
		r->n_tail--;
	}
	memcpy(r->tail[r->n_tail++], r->line, r->line_len + 1);
	r->line_len = 0;
}

static void split_relayed_lines(struct output_relay *r, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] != '\n' && r->line_len < RELAY_LINE_BYTES - 1)
			r->line[r->line_len++] = bytes[i];
		if (bytes[i] == '\n' || r->line_len == RELAY_LINE_BYTES - 1)
			print_relayed_line(r);
	}
}

static void read_relay(struct output_relay *r)
{
	char bytes[4096];
	ssize_t n;

	if (r->fd < 0)
		return;
	while ((n = read(r->fd, bytes, sizeof(bytes))) > 0)
		split_relayed_lines(r, bytes, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r->line_len)
		print_relayed_line(r);
	close(r->fd);
	r->fd = -1;
}

static void print_relay_tail(const struct output_relay *r)
{
	for (int i = 0; i < r->n_tail; i++)
		fprintf(stderr, "    %s\n", r->tail[i]);
}

/* ---- life ---- */

void child_ranks_reset(struct child_ranks *c)
{
	c->killed = false;
	memset(c->shared_status->rank, 0, (size_t)c->n * sizeof(c->shared_status->rank[0]));
	memset(c->end, 0, (size_t)c->n * sizeof(*c->end));
	memset(c->child, 0, (size_t)c->n * sizeof(*c->child));
	for (int r = 0; r < c->n; r++)
		begin_relay(&c->child[r].relay, -1, -1);
}

int child_ranks_init(struct child_ranks *c, int n, struct err *err)
{
	c->n = n;
	c->shared_status_bytes = sizeof(*c->shared_status) + (size_t)n * sizeof(struct shared_status_rank);
	c->shared_status =
		mmap(NULL, c->shared_status_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->shared_status == MAP_FAILED) {
		c->shared_status = NULL;
		return err_set_errno(err, errno, "cannot share memory with the ranks");
	}
	c->child = mem_array((size_t)n, sizeof(*c->child));
	c->end = mem_array((size_t)n, sizeof(*c->end));
	child_ranks_reset(c);
	return 0;
}

void child_ranks_done(struct child_ranks *c)
{
	if (c->shared_status)
		munmap(c->shared_status, c->shared_status_bytes);
	free(c->child);
	free(c->end);
}

static void setenv_number(const char *variable, int v)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", v);
	setenv(variable, text, 1);
}

/* Runs in the child; never returns. */
static void run_rank_process(const struct child_ranks *c, struct rank_context *s, const struct child_start *o,
			     pid_t launcher_pid)
{
	int code;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher_pid)
		_exit(1);
	for (int r = 0; r < s->local_rank; r++)
		if (c->child[r].relay.fd >= 0)
			close(c->child[r].relay.fd);
	close(o->close_fd);
	setenv_number("RANK", s->rank);
	setenv_number("LOCAL_RANK", s->local_rank);
	setenv_number("WORLD_SIZE", s->world);
	setenv_number("LOCAL_WORLD_SIZE", s->local_world);
	rank_context_bind(s, o->threads);
	code = o->rank_main(o->user, s);
	fflush(NULL);
	_exit(code);
}

/* Forks a rank whose stderr is a pipe to the launcher. */
int child_ranks_start(struct child_ranks *c, struct rank_context *s, const struct child_start *o, struct err *err)
{
	struct child_rank *child = &c->child[s->local_rank];
	pid_t launcher_pid = getpid(), pid;
	int fd[2];

	s->shared_status = c->shared_status;
	if (pipe2(fd, O_CLOEXEC))
		return err_set_errno(err, errno, "cannot create a pipe for rank %d", s->local_rank);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		dup2(fd[1], STDERR_FILENO);
		close(fd[1]);
		run_rank_process(c, s, o, launcher_pid);
	}
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return err_set_errno(err, errno, "cannot start rank %d", s->local_rank);
	}
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK))
		log_warn("the output of rank %d may be delayed", s->local_rank);
	child->pid = pid;
	begin_relay(&child->relay, fd[0], s->world > 1 ? s->rank : -1);
	return 0;
}

void child_ranks_kill(struct child_ranks *c)
{
	c->killed = true;
	for (int r = 0; r < c->n; r++)
		if (c->child[r].pid > 0 && !c->child[r].ended)
			kill(c->child[r].pid, SIGKILL);
}

bool child_ranks_idle(const struct child_ranks *c)
{
	for (int r = 0; r < c->n; r++)
		if (!c->child[r].ended && !atomic_load(&c->shared_status->rank[r].idle))
			return false;
	return true;
}

static void record_rank_end(struct child_ranks *c, int rank, int status)
{
	const struct shared_status_rank *b = &c->shared_status->rank[rank];

	c->child[rank].ended = true;
	c->end[rank] = (struct rank_end){ .pid = (int)c->child[rank].pid,
					  .status = status,
					  .at_s = clock_mono_s(),
					  .words = atomic_load(&b->said) ? &b->err : NULL };
	read_relay(&c->child[rank].relay);
}

int child_ranks_reap(struct child_ranks *c, void (*ended)(void *user, int rank), void *user)
{
	int running = 0;

	for (int r = 0; r < c->n; r++) {
		const struct child_rank *child = &c->child[r];
		int status;

		if (!child->ended && child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid) {
			record_rank_end(c, r, status);
			if (ended)
				ended(user, r);
		}
		running += !child->ended;
	}
	return running;
}

void child_ranks_give_up(struct child_ranks *c)
{
	for (int r = 0; r < c->n; r++)
		c->child[r].ended = c->child[r].pid <= 0;
	child_ranks_kill(c);
	while (child_ranks_reap(c, NULL, NULL) > 0)
		clock_sleep_s(0.01);
}

void child_ranks_poll(const struct child_ranks *c, struct pollfd *fds)
{
	for (int r = 0; r < c->n; r++)
		fds[r] = (struct pollfd){ .fd = c->child[r].relay.fd, .events = POLLIN };
}

void child_ranks_relay(struct child_ranks *c)
{
	for (int r = 0; r < c->n; r++)
		read_relay(&c->child[r].relay);
}

/* ---- heartbeats ---- */

void child_ranks_waiting(const struct child_ranks *c, int silent, char *text, size_t n)
{
	char line[FLIGHT_LINE_BYTES];
	struct flight_entry e;

	text[0] = '\0';
	for (int r = 0; r < c->n && !text[0]; r++) {
		if (r == silent || c->child[r].ended || !flight_last(&c->shared_status->rank[r].flight, 0, &e) ||
		    e.end_s > 0)
			continue;
		flight_describe(&e, clock_mono_s(), line);
		snprintf(text, n, "; rank %d waits in %s", c->first + r, line);
	}
}

static void warn_silent(const struct child_ranks *c, int rank)
{
	char waiting[FLIGHT_LINE_BYTES + 40];

	child_ranks_waiting(c, rank, waiting, sizeof(waiting));
	log_warn("rank %d (process %d) has sent no heartbeat for %.0f s%s", c->first + rank, (int)c->child[rank].pid,
		 SILENT_S, waiting);
}

static void kill_silent_rank(struct child_ranks *c, int rank, double heartbeat_s)
{
	struct shared_status_rank *b = &c->shared_status->rank[rank];
	char waiting[FLIGHT_LINE_BYTES + 40];

	child_ranks_waiting(c, rank, waiting, sizeof(waiting));
	err_set(&b->err, ERR_IO,
		"no heartbeat for %.0f s (--heartbeat-timeout): the process or its machine was suspended%s",
		heartbeat_s, waiting);
	atomic_store(&b->said, 1);
	kill(c->child[rank].pid, SIGKILL);
}

void child_ranks_check_pulses(struct child_ranks *c, double heartbeat_s)
{
	double now_s = clock_mono_s(), passed_s = now_s - c->checked_s;

	c->checked_s = now_s;
	passed_s = passed_s < CHECK_MOST_S ? passed_s : CHECK_MOST_S;
	for (int r = 0; r < c->n; r++) {
		struct child_rank *child = &c->child[r];
		uint32_t beats = atomic_load(&c->shared_status->rank[r].flight.beats);
		double before_s = child->silent_s;

		child->silent_s = beats == child->beats && beats && !child->ended ? child->silent_s + passed_s : 0;
		child->beats = beats;
		if (before_s < SILENT_S && child->silent_s >= SILENT_S)
			warn_silent(c, r);
		if (before_s < heartbeat_s && child->silent_s >= heartbeat_s)
			kill_silent_rank(c, r, heartbeat_s);
	}
}

/* ---- last words ---- */

/* A rank without an error message may have printed that of a library. */
static void print_tail(const struct child_ranks *c, int rank)
{
	const struct output_relay *relay = &c->child[rank].relay;

	if (c->end[rank].words || !relay->n_tail)
		return;
	log_error("last lines of rank %d:", c->first + rank);
	print_relay_tail(relay);
}

static void print_flight(const struct child_ranks *c, int rank)
{
	char line[FLIGHT_LINE_BYTES];
	struct flight_entry e;

	if (!flight_last(&c->shared_status->rank[rank].flight, 0, &e))
		return;
	log_error("last collectives of rank %d:", c->first + rank);
	for (unsigned i = 0; i < FLIGHT_LINES && flight_last(&c->shared_status->rank[rank].flight, i, &e); i++) {
		flight_describe(&e, c->end[rank].at_s, line);
		fprintf(stderr, "    %s\n", line);
	}
}

void child_ranks_print_last(const struct child_ranks *c, int rank)
{
	print_tail(c, rank);
	if (WIFSIGNALED(c->end[rank].status))
		print_flight(c, rank);
}
