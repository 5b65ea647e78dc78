/* launch.c: fork, watch, report. Signals arrive through a signalfd, the ranks' stderr through pipes; one poll loop.
 * ctrl-C reaches the ranks too, which keep it blocked: the launcher alone decides, through the board. */
#include "trainer/engine/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "trainer/engine/place.h"

#define GRACE_S 2.0   /* for the other ranks to notice a dead one by themselves */
#define TAIL_LINES 12 /* of a rank that died */
#define LINE_BYTES 400

struct child {
	pid_t pid;
	int pipe; /* its stderr; -1 once closed */
	bool ended;
	int status; /* as waitpid gives it */
	double ended_s;
	char line[LINE_BYTES]; /* not yet complete */
	size_t line_len;
	char tail[TAIL_LINES][LINE_BYTES];
	int n_tail;
};

struct launcher {
	const struct launch_opts *o;
	struct board *board;
	size_t board_bytes;
	struct child *child;
	int n;
	int lane_fd[SEAT_LANES];
	int signal_fd;
	sigset_t signals, old_signals;
	double failed_s; /* when the first rank failed; 0: none did */
	int stop_signal, stop_count;
	bool killed; /* the ranks were told to die at once */
};

/* Binds the process to its share of the cores, so that ranks do not push each other around. Not when ranks or threads
 * are more than the cores are. */
static void bind_to_share(const struct seat *s, int threads)
{
	cpu_set_t all, own;
	int n, first, last, seen = 0;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	n = CPU_COUNT(&all);
	first = (int)((long)s->local_rank * n / s->local_world);
	last = (int)((long)(s->local_rank + 1) * n / s->local_world);
	if (s->local_world <= 1 || last - first < threads || last == first)
		return;
	CPU_ZERO(&own);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		if (seen >= first && seen < last)
			CPU_SET(cpu, &own);
		seen++;
	}
	sched_setaffinity(0, sizeof(own), &own);
}

/* The stop signals are left to a signalfd; a closed terminal or pipe must not end a run. */
static void stop_set(sigset_t *set)
{
	struct sigaction hangup;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup */
		sigaddset(set, SIGHUP);
}

int launch_seat(struct seat *ret, const struct place *p, int threads, struct err *err)
{
	struct seat s = { .rank = p->rank,
			  .world = p->world,
			  .local_rank = p->local_rank,
			  .local_world = p->local_world,
			  .lane_fd = { -1, -1 },
			  .job = p->job };
	sigset_t set;
	cpu_set_t all;

	s.board = calloc(1, sizeof(*s.board) + sizeof(struct board_rank));
	if (!s.board)
		return err_set(err, ERR_NOMEM, "out of memory: start of the rank");
	if (sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) == sysconf(_SC_NPROCESSORS_ONLN))
		bind_to_share(&s, threads); /* nobody has bound the ranks yet */
	stop_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (s.signal_fd < 0) {
		free(s.board);
		return err_set_errno(err, errno, "cannot receive signals");
	}
	*ret = s;
	return 0;
}

static void set_number(const char *variable, int v)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", v);
	setenv(variable, text, 1);
}

static void close_from_child(struct launcher *l, int rank)
{
	for (int r = 0; r < rank; r++)
		if (l->child[r].pipe >= 0)
			close(l->child[r].pipe);
	close(l->signal_fd);
}

/* In the child: never returns. */
static void be_rank(struct launcher *l, int rank, int stderr_fd, pid_t launcher_pid)
{
	struct seat s = { .rank = rank,
			  .world = l->n,
			  .local_rank = rank,
			  .local_world = l->n,
			  .launched = true,
			  .signal_fd = -1,
			  .board = l->board };
	int code;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher_pid)
		_exit(1);
	close_from_child(l, rank);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	memcpy(s.lane_fd, l->lane_fd, sizeof(s.lane_fd));
	set_number("RANK", rank);
	set_number("LOCAL_RANK", rank);
	set_number("WORLD_SIZE", l->n);
	set_number("LOCAL_WORLD_SIZE", l->n);
	bind_to_share(&s, l->o->threads);
	code = l->o->rank_main(l->o->user, &s);
	fflush(NULL);
	_exit(code);
}

static int start_rank(struct launcher *l, int rank, struct err *err)
{
	pid_t launcher_pid = getpid(), pid;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return err_set_errno(err, errno, "cannot make a pipe for rank %d", rank);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		be_rank(l, rank, fd[1], launcher_pid);
	}
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return err_set_errno(err, errno, "cannot start rank %d", rank);
	}
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK))
		log_warn("the messages of rank %d may come late", rank);
	l->child[rank].pid = pid;
	l->child[rank].pipe = fd[0];
	return 0;
}

static void keep_line(struct launcher *l, int rank)
{
	struct child *c = &l->child[rank];

	c->line[c->line_len] = '\0';
	if (l->n > 1)
		fprintf(stderr, "[rank %d] %s\n", rank, c->line);
	else
		fprintf(stderr, "%s\n", c->line);
	if (c->n_tail == TAIL_LINES) {
		memmove(c->tail[0], c->tail[1], sizeof(c->tail[0]) * (TAIL_LINES - 1));
		c->n_tail--;
	}
	memcpy(c->tail[c->n_tail++], c->line, c->line_len + 1);
	c->line_len = 0;
}

static void read_stderr(struct launcher *l, int rank)
{
	struct child *c = &l->child[rank];
	char bytes[4096];
	ssize_t n;

	while (c->pipe >= 0 && (n = read(c->pipe, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (bytes[i] != '\n' && c->line_len < LINE_BYTES - 1)
				c->line[c->line_len++] = bytes[i];
			if (bytes[i] == '\n' || c->line_len == LINE_BYTES - 1)
				keep_line(l, rank);
		}
	}
	if (c->line_len)
		keep_line(l, rank);
	if (c->pipe >= 0)
		close(c->pipe);
	c->pipe = -1;
}

static void kill_all(struct launcher *l)
{
	l->killed = true;
	for (int r = 0; l->child && r < l->n; r++)
		if (l->child[r].pid > 0 && !l->child[r].ended)
			kill(l->child[r].pid, SIGKILL);
}

static void read_signal(struct launcher *l)
{
	struct signalfd_siginfo info;

	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (l->stop_count++ == 0) {
			l->stop_signal = (int)info.ssi_signo;
			atomic_store(&l->board->stop_signal, l->stop_signal);
			log_warn("%s: the step is finished first; once more ends at once", strsignal(l->stop_signal));
		} else {
			kill_all(l);
		}
	}
}

static const struct err *last_words(const struct launcher *l, int rank)
{
	const struct board_rank *b = &l->board->rank[rank];

	return atomic_load(&b->said) ? &b->err : NULL;
}

/* A rank that ends early because it was asked to is no failure; nor is one that saw another end so, a moment before its
 * own turn came. */
static bool has_failed(const struct launcher *l, int rank)
{
	const struct child *c = &l->child[rank];
	const struct err *e = last_words(l, rank);
	bool asked = l->stop_signal && (l->killed || WIFEXITED(c->status)) && (!e || e->code == ERR_PEER);

	return c->status != 0 && !asked;
}

static int reap(struct launcher *l)
{
	int running = 0;

	for (int r = 0; r < l->n; r++) {
		struct child *c = &l->child[r];

		if (!c->ended && c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
			c->ended = true;
			c->ended_s = clock_mono_s();
			read_stderr(l, r);
			if (!l->failed_s && has_failed(l, r))
				l->failed_s = c->ended_s;
		}
		running += !c->ended;
	}
	return running;
}

static void watch(struct launcher *l)
{
	struct pollfd *fds = calloc((size_t)l->n + 1, sizeof(*fds));

	while (reap(l) > 0) {
		if (l->failed_s && !l->killed && clock_mono_s() - l->failed_s > GRACE_S)
			kill_all(l);
		if (!fds) { /* out of memory: still watched, only less promptly */
			clock_sleep_s(0.05);
			read_signal(l);
			continue;
		}
		fds[0] = (struct pollfd){ .fd = l->signal_fd, .events = POLLIN };
		for (int r = 0; r < l->n; r++)
			fds[r + 1] = (struct pollfd){ .fd = l->child[r].pipe, .events = POLLIN };
		poll(fds, (nfds_t)l->n + 1, 200);
		read_signal(l);
		for (int r = 0; r < l->n; r++)
			if (l->child[r].pipe >= 0)
				read_stderr(l, r);
	}
	free(fds);
}

/* How much a failed rank is to blame: 0 for one that the launcher killed at the end, 1 for one that was merely told
 * that another had died, 2 for a failure of its own. */
static int blame(const struct launcher *l, int rank)
{
	const struct err *e = last_words(l, rank);
	const struct child *c = &l->child[rank];
	bool late_kill =
		l->killed && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL && c->ended_s > l->failed_s;

	if (!e && late_kill)
		return 0;
	return e && e->code == ERR_PEER ? 1 : 2;
}

/* Of those that are most to blame the first in time; -1 when no rank failed. */
static int first_failed(const struct launcher *l)
{
	int first = -1;

	for (int r = 0; r < l->n; r++) {
		bool more = first < 0 || blame(l, r) > blame(l, first);
		bool earlier =
			first >= 0 && blame(l, r) == blame(l, first) && l->child[r].ended_s < l->child[first].ended_s;

		if (has_failed(l, r) && (more || earlier))
			first = r;
	}
	return first;
}

static bool said_by_all(const struct launcher *l, const struct err *e)
{
	for (int r = 0; r < l->n; r++) {
		const struct err *other = last_words(l, r);

		if (!other || strcmp(other->text, e->text))
			return false;
	}
	return true;
}

static void describe_death(const struct launcher *l, int rank, char *text, size_t n)
{
	const struct child *c = &l->child[rank];
	const struct err *e = last_words(l, rank);

	if (e && (l->n == 1 || said_by_all(l, e)))
		snprintf(text, n, "%s", e->text);
	else if (e)
		snprintf(text, n, "rank %d: %s", rank, e->text);
	else if (WIFSIGNALED(c->status))
		snprintf(text, n, "rank %d (process %d) was ended by signal %d (%s)%s", rank, (int)c->pid,
			 WTERMSIG(c->status), strsignal(WTERMSIG(c->status)),
			 WTERMSIG(c->status) == SIGKILL
				 ? "; without a person behind it that is mostly lack of memory (dmesg tells)"
				 : "");
	else
		snprintf(text, n, "rank %d (process %d) ended with exit code %d", rank, (int)c->pid,
			 WEXITSTATUS(c->status));
}

static void print_tail(const struct launcher *l, int rank)
{
	const struct child *c = &l->child[rank];

	if (last_words(l, rank) || !c->n_tail)
		return;
	log_error("last lines of rank %d:", rank);
	for (int i = 0; i < c->n_tail; i++)
		fprintf(stderr, "    %s\n", c->tail[i]);
}

/* The job's exit code from how its ranks ended; prints what is to be said, and keeps it in reason. */
static int judge(struct launcher *l, char *reason, size_t n)
{
	int failed, code = 1;
	bool stopped = false, saved = true;

	snprintf(reason, n, "%s", "");
	for (int r = 0; r < l->n; r++) {
		stopped = stopped || l->child[r].status;
		saved = saved && WIFEXITED(l->child[r].status) && WEXITSTATUS(l->child[r].status) == SEAT_PREEMPTED;
	}
	if (l->stop_signal && !l->failed_s && stopped) {
		snprintf(reason, n, "stopped by signal %d (%s)%s", l->stop_signal, strsignal(l->stop_signal),
			 saved ? " after a checkpoint" : "");
		if (saved)
			return SEAT_PREEMPTED;
		return l->stop_signal == SIGINT ? 130 : 1;
	}
	failed = first_failed(l);
	if (failed < 0)
		return 0;
	if (WIFEXITED(l->child[failed].status) && WEXITSTATUS(l->child[failed].status))
		code = WEXITSTATUS(l->child[failed].status);
	describe_death(l, failed, reason, n);
	log_error("%s", reason);
	print_tail(l, failed);
	return code == 2 || code == 130 ? code : 1;
}

static int prepare(struct launcher *l, struct err *err)
{
	l->board_bytes = sizeof(*l->board) + (size_t)l->n * sizeof(struct board_rank);
	l->board = mmap(NULL, l->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->board == MAP_FAILED) {
		l->board = NULL;
		return err_set_errno(err, errno, "cannot share memory with the ranks");
	}
	l->child = calloc((size_t)l->n, sizeof(*l->child));
	if (!l->child)
		return err_set(err, ERR_NOMEM, "out of memory: %d ranks", l->n);
	for (int r = 0; r < l->n; r++)
		l->child[r].pipe = -1;
	for (int i = 0; i < SEAT_LANES; i++) {
		l->lane_fd[i] = memfd_create("dptrain", MFD_CLOEXEC);
		if (l->lane_fd[i] < 0)
			return err_set_errno(err, errno, "cannot make shared memory");
	}
	stop_set(&l->signals);
	sigprocmask(SIG_BLOCK, &l->signals, &l->old_signals); /* the ranks keep these blocked */
	sigaddset(&l->signals, SIGCHLD);
	l->signal_fd = signalfd(-1, &l->signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (l->signal_fd < 0)
		return err_set_errno(err, errno, "cannot receive signals");
	return 0;
}

static void done(struct launcher *l)
{
	for (int i = 0; i < SEAT_LANES; i++)
		if (l->lane_fd[i] >= 0)
			close(l->lane_fd[i]);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	if (l->board)
		munmap(l->board, l->board_bytes);
	free(l->child);
}

int launch_run(const struct launch_opts *o, struct err *err)
{
	struct launcher l = { .o = o, .n = o->nproc, .lane_fd = { -1, -1 }, .signal_fd = -1 };
	char reason[600];
	int rc = prepare(&l, err), code;

	for (int r = 0; !rc && r < l.n; r++)
		rc = start_rank(&l, r, err);
	if (rc) {
		for (int r = 0; l.child && r < l.n; r++)
			l.child[r].ended = l.child[r].pid <= 0;
		kill_all(&l);
		while (l.child && reap(&l) > 0)
			clock_sleep_s(0.01);
		done(&l);
		return rc;
	}
	sigprocmask(SIG_BLOCK, &l.signals, NULL);
	watch(&l);
	code = judge(&l, reason, sizeof(reason));
	if (o->ended)
		o->ended(o->user, l.board, code, reason);
	done(&l);
	return code;
}
