/* launch.c: forks the ranks, watches them and reports their end. One poll loop reads signals from a signalfd and the
 * ranks' stderr from pipes. ctrl-C reaches the ranks too, but they keep it blocked: the launcher alone decides, through
 * the status that it shares with them. */
#include "trainer/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "trainer/comm/comm.h"
#include "trainer/launch/node_group.h"
#include "trainer/launch/output_relay.h"
#include "trainer/launch/job_result.h"

#define SILENT_S 3.0
/* a longer time between two checks counts as this: a whole job that was stopped is no failure */
#define CHECK_MOST_S 1.0
#define FLIGHT_LINES 4	  /* lines of a rank's last collectives */
#define GRACE_S 2.0   /* for the other ranks to notice a dead one and end */

struct launched_rank {
	pid_t pid;
	bool ended;
	uint32_t beats; /* heartbeat counter, as last read */
	double silent_s;
	struct output_relay relay; /* relays its stderr */
};

struct launcher {
	const struct launch_opts *o;
	struct board *board;
	size_t board_bytes;
	struct launched_rank *child;
	struct rank_end *end; /* end of each child that has ended */
	int n;
	int shm_fd; /* shared memory of the ranks; -1: none */
	int signal_fd;
	sigset_t signals;
	double failed_s; /* when the first rank failed; 0: none did */
	int stop_signal, stop_count;
	double checked_s; /* last check of the heartbeats */
	bool killed; /* SIGKILL was sent to the ranks */
	struct node_group *nodes; /* launchers of the other machines; NULL: one machine */
	struct job_result others;	/* the worst result of other machines so far */
	int others_count, others_ended;
	bool lost;	/* a machine is lost */
	int attempt;
	bool again;	/* the ranks will be restarted */
	bool concluded; /* node 0 has sent the result of the job, which is in others */
};

static void setenv_number(const char *variable, int v)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", v);
	setenv(variable, text, 1);
}

static void close_inherited_fds(struct launcher *l, int rank)
{
	for (int r = 0; r < rank; r++)
		if (l->child[r].relay.fd >= 0)
			close(l->child[r].relay.fd);
	close(l->signal_fd);
}

static int launch_first_rank(const struct launcher *l)
{
	return l->nodes ? node_group_first(l->nodes) : 0;
}

static int launch_world(const struct launcher *l)
{
	return l->nodes ? node_group_world(l->nodes) : l->n;
}

/* Sets how this rank will connect to the ranks of other machines. */
static void set_rank_bootstrap(const struct launcher *l, struct rank_context *s)
{
	if (!l->nodes)
		return;
	s->nodes = node_group_left(l->nodes);
	snprintf(s->node, sizeof(s->node), "node %d", node_group_self(l->nodes));
	s->net = (struct bootstrap_opts){ .what = "rank",
					 .host = node_group_host(l->nodes),
					 .port = node_group_ranks_port(l->nodes),
					 .listener = s->rank == 0 ? node_group_ranks_listener(l->nodes) : -1,
					 .self = s->rank,
					 .count = s->world,
					 .key = node_group_key(l->nodes),
					 .wait_s = NODE_GROUP_WAIT_S };
}

/* Runs in the child; never returns. */
static void run_rank_process(struct launcher *l, int rank, int stderr_fd, pid_t launcher_pid)
{
	struct rank_context s = { .rank = launch_first_rank(l) + rank,
			  .world = launch_world(l),
			  .local_rank = rank,
			  .local_world = l->n,
			  .nodes = 1,
			  .net = { .listener = -1 },
			  .shm_fd = l->shm_fd,
			  .attempt = l->attempt,
			  .launched = true,
			  .signal_fd = -1,
			  .board = l->board };
	int code;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher_pid)
		_exit(1);
	close_inherited_fds(l, rank);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	set_rank_bootstrap(l, &s);
	setenv_number("RANK", s.rank);
	setenv_number("LOCAL_RANK", rank);
	setenv_number("WORLD_SIZE", s.world);
	setenv_number("LOCAL_WORLD_SIZE", l->n);
	rank_context_bind(&s, l->o->threads);
	code = l->o->rank_main(l->o->user, &s);
	fflush(NULL);
	_exit(code);
}

/* Forks a rank whose stderr is a pipe to the launcher. */
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
		run_rank_process(l, rank, fd[1], launcher_pid);
	}
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return err_set_errno(err, errno, "cannot start rank %d", rank);
	}
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK))
		log_warn("the output of rank %d may be delayed", rank);
	l->child[rank].pid = pid;
	output_relay_begin(&l->child[rank].relay, fd[0], launch_world(l) > 1 ? launch_first_rank(l) + rank : -1);
	return 0;
}

static void kill_ranks(struct launcher *l)
{
	l->killed = true;
	for (int r = 0; r < l->n; r++)
		if (l->child[r].pid > 0 && !l->child[r].ended)
			kill(l->child[r].pid, SIGKILL);
}

static void send_node_message(struct launcher *l, enum node_group_kind kind, int number)
{
	if (l->nodes)
		node_group_say(l->nodes, &(struct node_group_word){ .kind = (int)kind, .number = number });
}

/* Returns true if no running rank has begun work that is worth finishing. */
static bool all_ranks_idle(const struct launcher *l)
{
	for (int r = 0; r < l->n; r++)
		if (!l->child[r].ended && !atomic_load(&l->board->rank[r].idle))
			return false;
	return true;
}

/* Returns true after ctrl-C while no rank has work to finish. */
static bool should_end_at_once(const struct launcher *l)
{
	return l->stop_signal == SIGINT && all_ranks_idle(l);
}

static void read_signal(struct launcher *l)
{
	struct signalfd_siginfo info;

	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD || (info.ssi_signo == SIGHUP && l->stop_count))
			continue; /* kernel and shell both report a closed terminal */
		if (l->stop_count++ == 0) {
			l->stop_signal = (int)info.ssi_signo;
			atomic_store(&l->board->stop_signal, l->stop_signal);
			log_warn("%s: %s", strsignal(l->stop_signal),
				 should_end_at_once(l) ? "no step has begun; it ends at once"
						 : "it ends after this step; send the signal again to end at once");
			send_node_message(l, NODE_GROUP_STOP, l->stop_signal);
		} else {
			kill_ranks(l);
		}
	}
}

static struct job_end job_end(const struct launcher *l)
{
	return (struct job_end){ .rank = l->end,
				 .first = launch_first_rank(l),
				 .n = l->n,
				 .stop_signal = l->stop_signal,
				 .killed = l->killed,
				 .failed_s = l->failed_s };
}

static void record_rank_end(struct launcher *l, int rank, int status)
{
	const struct board_rank *b = &l->board->rank[rank];
	struct job_end j;

	l->child[rank].ended = true;
	l->end[rank] = (struct rank_end){ .pid = (int)l->child[rank].pid,
					  .status = status,
					  .at_s = clock_mono_s(),
					  .words = atomic_load(&b->said) ? &b->err : NULL };
	output_relay_read(&l->child[rank].relay);
	j = job_end(l);
	if (l->failed_s || !job_result_failed(&j, rank))
		return;
	l->failed_s = l->end[rank].at_s;
	send_node_message(l, NODE_GROUP_FAILED, launch_first_rank(l) + rank);
}

/* ---- other machines ---- */

/* Keeps the worst result: a rank's own failure outranks a failure that follows from another. */
static void keep_worst_result(struct launcher *l, const struct job_result *v)
{
	bool worse = v->code && (!l->others.code || (v->reason[0] && v->blame > l->others.blame));

	if (worse)
		l->others = *v;
}

/* Applies a message of another launcher. */
static void handle_node_message(struct launcher *l, const struct node_group_word *w)
{
	switch (w->kind) {
	case NODE_GROUP_STOP:
		if (l->stop_count++)
			break;
		l->stop_signal = w->number;
		atomic_store(&l->board->stop_signal, w->number);
		break;
	case NODE_GROUP_LOST:
		if (l->concluded) /* node 0 sent the result and closed the connection */
			break;
		keep_worst_result(l, &w->verdict);
		l->others_ended++;
		l->lost = true;
		send_node_message(l, NODE_GROUP_FAILED, -1);
		/* fall through */
	case NODE_GROUP_FAILED:
		if (!l->failed_s)
			l->failed_s = clock_mono_s();
		break;
	case NODE_GROUP_ENDED:
		keep_worst_result(l, &w->verdict);
		l->others_ended++;
		break;
	case NODE_GROUP_GONE:
		node_group_lose(l->nodes, w->number);
		break;
	case NODE_GROUP_VERDICT:
		l->others = w->verdict;
		l->again = w->number == 1;
		l->concluded = true;
		break;
	case NODE_GROUP_SILENT:
		log_warn("%s", w->verdict.reason);
		break;
	}
}

static void read_node_messages(struct launcher *l)
{
	struct node_group_word w;

	while (l->nodes && node_group_hear(l->nodes, l->o->heartbeat_s, &w))
		handle_node_message(l, &w);
}

/* Returns true if the ranks may be restarted: not after a stop signal, nor when the settings of the run are wrong. */
static bool may_restart(const struct launcher *l, const struct job_result *v)
{
	bool enough = !l->lost || node_group_left(l->nodes) >= l->o->nodes_least;

	return v->code == 1 && !l->stop_signal && enough && l->attempt < l->o->max_restarts;
}

/* Node 0: tells the other launchers which machines are lost. */
static void announce_lost_nodes(struct launcher *l)
{
	for (int i = 0; i < node_group_count(l->nodes); i++)
		if (node_group_lost(l->nodes, i))
			send_node_message(l, NODE_GROUP_GONE, i);
}

/* Returns the result of the whole job: node 0 receives the results of all machines, chooses the worst and sends it to
 * them. A lost machine ends the wait. */
static struct job_result agree_job_result(struct launcher *l, const struct job_result *own)
{
	struct node_group_word w = { .kind = NODE_GROUP_ENDED, .verdict = *own };
	bool root = node_group_self(l->nodes) == 0;
	int awaited = root ? l->others_count : 1;
	struct pollfd *fds = calloc((size_t)node_group_count(l->nodes), sizeof(*fds));

	if (!root)
		node_group_say(l->nodes, &w);
	while (!l->concluded && l->others_ended < awaited) {
		if (fds)
			poll(fds, (nfds_t)node_group_poll(l->nodes, fds), 100);
		else
			clock_sleep_s(0.05);
		read_node_messages(l);
		read_signal(l);
		if (l->stop_count > 1)
			break;
	}
	free(fds);
	if (l->concluded)
		return l->others;
	w.verdict = own->code && (own->blame >= l->others.blame || !l->others.code) ? *own : l->others;
	w.kind = NODE_GROUP_VERDICT;
	l->again = root && may_restart(l, &w.verdict);
	w.number = l->again;
	if (l->again)
		announce_lost_nodes(l);
	if (root)
		node_group_say(l->nodes, &w);
	return w.verdict;
}

static int reap_ranks(struct launcher *l)
{
	int running = 0;

	for (int r = 0; r < l->n; r++) {
		const struct launched_rank *c = &l->child[r];
		int status;

		if (!c->ended && c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid)
			record_rank_end(l, r, status);
		running += !c->ended;
	}
	return running;
}

/* ---- heartbeats ---- */

/* Describes a collective in which another rank of this machine waits; false: none waits. */
static bool describe_waiting(const struct launcher *l, int silent, char *text, size_t n)
{
	char line[FLIGHT_LINE_BYTES];
	struct flight_entry e;

	for (int r = 0; r < l->n; r++) {
		if (r == silent || l->child[r].ended || !flight_last(&l->board->rank[r].flight, 0, &e) || e.end_s > 0)
			continue;
		flight_describe(&e, clock_mono_s(), line);
		snprintf(text, n, "; rank %d waits in %s", launch_first_rank(l) + r, line);
		return true;
	}
	return false;
}

static void warn_silent(const struct launcher *l, int rank)
{
	char waiting[FLIGHT_LINE_BYTES + 40] = "";

	describe_waiting(l, rank, waiting, sizeof(waiting));
	log_warn("rank %d (process %d) has sent no heartbeat for %.0f s%s", launch_first_rank(l) + rank,
		 (int)l->child[rank].pid, SILENT_S, waiting);
}

static void kill_silent_rank(struct launcher *l, int rank)
{
	struct board_rank *b = &l->board->rank[rank];
	char waiting[FLIGHT_LINE_BYTES + 40] = "";

	describe_waiting(l, rank, waiting, sizeof(waiting));
	err_set(&b->err, ERR_IO,
		"no heartbeat for %.0f s (--heartbeat-timeout): the process or its machine was suspended%s",
		l->o->heartbeat_s, waiting);
	atomic_store(&b->said, 1);
	kill(l->child[rank].pid, SIGKILL);
}

static void check_pulses(struct launcher *l)
{
	double now_s = clock_mono_s(), passed_s = now_s - l->checked_s;

	l->checked_s = now_s;
	passed_s = passed_s < CHECK_MOST_S ? passed_s : CHECK_MOST_S;
	for (int r = 0; r < l->n; r++) {
		struct launched_rank *c = &l->child[r];
		uint32_t beats = atomic_load(&l->board->rank[r].flight.beats);
		double before_s = c->silent_s;

		c->silent_s = beats == c->beats && beats && !c->ended ? c->silent_s + passed_s : 0;
		c->beats = beats;
		if (before_s < SILENT_S && c->silent_s >= SILENT_S)
			warn_silent(l, r);
		if (before_s < l->o->heartbeat_s && c->silent_s >= l->o->heartbeat_s)
			kill_silent_rank(l, r);
	}
}

/* Waits until all ranks have ended; relays their stderr, and kills the rest after a failure or a second signal. */
static void watch_ranks(struct launcher *l)
{
	size_t most = (size_t)l->n + 1 + (l->nodes ? (size_t)node_group_count(l->nodes) : 0);
	struct pollfd *fds = calloc(most, sizeof(*fds));

	while (reap_ranks(l) > 0) {
		int n = l->n + 1;

		read_node_messages(l);
		check_pulses(l);
		if (l->failed_s && !l->killed && clock_mono_s() - l->failed_s > GRACE_S)
			kill_ranks(l);
		if (!l->killed && should_end_at_once(l))
			kill_ranks(l);
		if (!fds) { /* out of memory: watches the ranks by polling */
			clock_sleep_s(0.05);
			read_signal(l);
			continue;
		}
		fds[0] = (struct pollfd){ .fd = l->signal_fd, .events = POLLIN };
		for (int r = 0; r < l->n; r++)
			fds[r + 1] = (struct pollfd){ .fd = l->child[r].relay.fd, .events = POLLIN };
		if (l->nodes)
			n += node_group_poll(l->nodes, fds + n);
		poll(fds, (nfds_t)n, 200);
		read_signal(l);
		for (int r = 0; r < l->n; r++)
			output_relay_read(&l->child[r].relay);
	}
	free(fds);
}

/* A rank without an error message may have printed that of a library. */
static void print_tail(const struct launcher *l, int rank)
{
	const struct output_relay *relay = &l->child[rank].relay;

	if (l->end[rank].words || !relay->n_tail)
		return;
	log_error("last lines of rank %d:", launch_first_rank(l) + rank);
	output_relay_print_tail(relay);
}

static void print_flight(const struct launcher *l, int rank)
{
	char line[FLIGHT_LINE_BYTES];
	struct flight_entry e;

	if (!flight_last(&l->board->rank[rank].flight, 0, &e))
		return;
	log_error("last collectives of rank %d:", launch_first_rank(l) + rank);
	for (unsigned i = 0; i < FLIGHT_LINES && flight_last(&l->board->rank[rank].flight, i, &e); i++) {
		flight_describe(&e, l->end[rank].at_s, line);
		fprintf(stderr, "    %s\n", line);
	}
}

/* Prints the result of the job and returns its exit code. */
static int conclude_job(struct launcher *l)
{
	const struct job_end j = job_end(l);
	const struct job_result own = job_result_of(&j), v = l->nodes ? agree_job_result(l, &own) : own;

	if (!l->nodes)
		l->again = may_restart(l, &own);

	if (v.code && v.blame != JOB_RESULT_KILLED)
		log_error("%s", v.reason);
	if (own.culprit >= 0 && own.blame == JOB_RESULT_OWN) {
		print_tail(l, own.culprit);
		if (WIFSIGNALED(l->end[own.culprit].status))
			print_flight(l, own.culprit);
	}
	if (l->again && l->nodes && node_group_left(l->nodes) < node_group_count(l->nodes))
		log_warn("restarting the ranks (%d of %d) on %d of %d machines", l->attempt + 1, l->o->max_restarts,
			 node_group_left(l->nodes), node_group_count(l->nodes));
	else if (l->again)
		log_warn("restarting the ranks (%d of %d)", l->attempt + 1, l->o->max_restarts);
	else if (l->o->ended)
		l->o->ended(l->o->user, l->board, v.code, v.reason);
	return v.code;
}

static int make_shm(struct launcher *l, struct err *err)
{
	return launch_world(l) > 1 ? comm_shm_make(&l->shm_fd, l->n, err) : 0;
}

static void close_shm(struct launcher *l)
{
	if (l->shm_fd >= 0)
		close(l->shm_fd);
	l->shm_fd = -1;
}

static void reset_children(struct launcher *l)
{
	memset(l->child, 0, (size_t)l->n * sizeof(*l->child));
	for (int r = 0; r < l->n; r++)
		output_relay_begin(&l->child[r].relay, -1, -1);
}

/* Makes the shared status, the table of children, the ranks' shared memory and the signalfd. */
static int prepare_launcher(struct launcher *l, struct err *err)
{
	int rc;

	l->board_bytes = sizeof(*l->board) + (size_t)l->n * sizeof(struct board_rank);
	l->board = mmap(NULL, l->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->board == MAP_FAILED) {
		l->board = NULL;
		return err_set_errno(err, errno, "cannot share memory with the ranks");
	}
	l->child = calloc((size_t)l->n, sizeof(*l->child));
	l->end = calloc((size_t)l->n, sizeof(*l->end));
	if (!l->child || !l->end)
		return err_set(err, ERR_NOMEM, "out of memory: %d ranks", l->n);
	reset_children(l);
	rc = make_shm(l, err);
	if (rc)
		return rc;
	rank_context_stop_signals(&l->signals);
	sigprocmask(SIG_BLOCK, &l->signals, NULL); /* the ranks keep these signals blocked */
	sigaddset(&l->signals, SIGCHLD);
	l->signal_fd = signalfd(-1, &l->signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (l->signal_fd < 0)
		return err_set_errno(err, errno, "cannot receive signals");
	return 0;
}

static void free_launcher(struct launcher *l)
{
	close_shm(l);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	if (l->board)
		munmap(l->board, l->board_bytes);
	free(l->child);
	free(l->end);
}

static int start_all_ranks(struct launcher *l, struct err *err)
{
	int rc = 0;

	for (int r = 0; !rc && r < l->n; r++)
		rc = start_rank(l, r, err);
	if (!rc)
		return 0;
	for (int r = 0; r < l->n; r++)
		l->child[r].ended = l->child[r].pid <= 0;
	kill_ranks(l);
	while (reap_ranks(l) > 0)
		clock_sleep_s(0.01);
	return rc;
}

/* Drops the lost machines from the job. */
static int drop_lost_nodes(struct launcher *l, struct err *err)
{
	int before = launch_world(l);

	if (!l->nodes)
		return 0;
	node_group_shrink(l->nodes);
	l->others_count = node_group_left(l->nodes) - 1;
	l->lost = false;
	return launch_world(l) == before ? 0 : l->o->resized(l->o->user, launch_world(l), err);
}

/* Resets the launcher for a restart; the open run and pending stop signals remain. */
static int restart_ranks(struct launcher *l, struct err *err)
{
	int rc = drop_lost_nodes(l, err);

	if (rc)
		return rc;
	l->attempt++;
	l->again = l->killed = l->concluded = false;
	l->failed_s = 0;
	l->others = (struct job_result){ .culprit = -1 };
	l->others_ended = 0;
	memset(l->board->rank, 0, (size_t)l->n * sizeof(l->board->rank[0]));
	memset(l->end, 0, (size_t)l->n * sizeof(*l->end));
	reset_children(l);
	close_shm(l);
	return make_shm(l, err);
}

int launch_run(const struct launch_opts *o, struct err *err)
{
	struct launcher l = { .o = o, .n = o->nproc, .nodes = o->nodes, .shm_fd = -1, .signal_fd = -1 };
	int rc = prepare_launcher(&l, err);

	l.others_count = l.nodes ? node_group_left(l.nodes) - 1 : 0;
	do {
		if (!rc && l.again)
			rc = restart_ranks(&l, err);
		if (!rc)
			rc = start_all_ranks(&l, err);
		if (rc)
			break;
		sigprocmask(SIG_BLOCK, &l.signals, NULL);
		watch_ranks(&l);
		rc = conclude_job(&l);
		rc = l.again ? 0 : rc;
	} while (l.again);
	free_launcher(&l);
	return rc;
}
