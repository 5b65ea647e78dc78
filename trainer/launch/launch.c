/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c: the life of a job: starts the ranks, watches them, agrees with other machines on the result, restarts. One
 * poll loop reads signals from a signalfd, the ranks' stderr and the other launchers' messages. ctrl-C reaches the
 * ranks too, but they keep it blocked: the launcher alone decides, through the status that it shares with them. */
#include "trainer/launch/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/launch/child_ranks.h"
#include "trainer/launch/node_group.h"

#define GRACE_S 2.0 /* time for the other ranks to notice a dead one and end */

struct launcher {
	const struct launch_opts *o;
	struct child_ranks ranks;
	int shm_fd; /* shared memory of the ranks; -1: none */
	int signal_fd;
	sigset_t signals;
	double failed_s; /* when the first rank failed; 0: none did */
	int stop_signal, stop_count;
	struct node_group *nodes; /* launchers of the other machines; NULL: one machine */
	struct job_result others; /* the worst result of other machines so far */
	int others_count, others_ended;
	bool lost; /* a machine is lost */
	int attempt;
	bool again;	/* the ranks will be restarted */
	bool concluded; /* node 0 has sent the result of the job, which is in others */
};

static int launch_first_rank(const struct launcher *l)
{
	return l->nodes ? node_group_first(l->nodes) : 0;
}

static int launch_world(const struct launcher *l)
{
	return l->nodes ? node_group_world(l->nodes) : l->o->nproc;
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

static void send_node_message(struct launcher *l, enum node_group_kind kind, int number)
{
	if (l->nodes)
		node_group_say(l->nodes, &(struct node_group_word){ .kind = (int)kind, .number = number });
}

/* Returns true after ctrl-C while no rank has work to finish. */
static bool should_end_at_once(const struct launcher *l)
{
	return l->stop_signal == SIGINT && child_ranks_idle(&l->ranks);
}

static void read_signal(struct launcher *l)
{
	struct signalfd_siginfo info;

	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD || (info.ssi_signo == SIGHUP && l->stop_count))
			continue; /* kernel and shell both report a closed terminal */
		if (l->stop_count++ == 0) {
			l->stop_signal = (int)info.ssi_signo;
			atomic_store(&l->ranks.shared_status->stop_signal, l->stop_signal);
			log_warn("%s: %s", strsignal(l->stop_signal),
				 should_end_at_once(l) ? "no step has begun; it ends at once"
						 : "it ends after this step; send the signal again to end at once");
			send_node_message(l, NODE_GROUP_STOP, l->stop_signal);
		} else {
			child_ranks_kill(&l->ranks);
		}
	}
}

static struct job_end job_end(const struct launcher *l)
{
	return (struct job_end){ .rank = l->ranks.end,
				 .first = launch_first_rank(l),
				 .n = l->ranks.n,
				 .stop_signal = l->stop_signal,
				 .killed = l->ranks.killed,
				 .failed_s = l->failed_s };
}

/* Called when a rank of this machine has ended. */
static void note_rank_end(void *user, int rank)
{
	struct launcher *l = user;
	struct job_end j = job_end(l);

	if (l->failed_s || !job_result_failed(&j, rank))
		return;
	l->failed_s = l->ranks.end[rank].at_s;
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
static void handle_node_message(struct launcher *l, struct node_group_word *w)
{
	char waiting[FLIGHT_LINE_BYTES + 40];

	if (w->kind == NODE_GROUP_LOST || w->kind == NODE_GROUP_SILENT) { /* what a cut wire holds up */
		const size_t n = strlen(w->verdict.reason);

		child_ranks_waiting(&l->ranks, -1, waiting, sizeof(waiting));
		snprintf(w->verdict.reason + n, sizeof(w->verdict.reason) - n, "%s", waiting);
	}
	switch (w->kind) {
	case NODE_GROUP_STOP:
		if (l->stop_count++)
			break;
		l->stop_signal = w->number;
		atomic_store(&l->ranks.shared_status->stop_signal, w->number);
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
	struct pollfd *fds = mem_array((size_t)node_group_count(l->nodes), sizeof(*fds));

	if (!root)
		node_group_say(l->nodes, &w);
	while (!l->concluded && l->others_ended < awaited) {
		poll(fds, (nfds_t)node_group_poll(l->nodes, fds), 100);
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

/* ---- watching ---- */

/* Waits until all ranks have ended; kills the rest after a failure or a second signal. */
static void watch_ranks(struct launcher *l)
{
	struct child_ranks *c = &l->ranks;
	size_t most = (size_t)c->n + 1 + (l->nodes ? (size_t)node_group_count(l->nodes) : 0);
	struct pollfd *fds = mem_array(most, sizeof(*fds));

	while (child_ranks_reap(c, note_rank_end, l) > 0) {
		int n = c->n + 1;

		read_node_messages(l);
		child_ranks_check_pulses(c, l->o->heartbeat_s);
		if (l->failed_s && !c->killed && clock_mono_s() - l->failed_s > GRACE_S)
			child_ranks_kill(c);
		if (!c->killed && should_end_at_once(l))
			child_ranks_kill(c);
		if (!fds) { /* out of memory: watches the ranks by polling */
			clock_sleep_s(0.05);
			read_signal(l);
			continue;
		}
		fds[0] = (struct pollfd){ .fd = l->signal_fd, .events = POLLIN };
		child_ranks_poll(c, fds + 1);
		if (l->nodes)
			n += node_group_poll(l->nodes, fds + n);
		poll(fds, (nfds_t)n, 200);
		read_signal(l);
		child_ranks_relay(c);
	}
	free(fds);
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
	if (own.culprit >= 0 && own.blame == JOB_RESULT_OWN)
		child_ranks_print_last(&l->ranks, own.culprit);
	if (l->again && l->nodes && node_group_left(l->nodes) < node_group_count(l->nodes))
		log_warn("restarting the ranks (%d of %d) on %d of %d machines", l->attempt + 1, l->o->max_restarts,
			 node_group_left(l->nodes), node_group_count(l->nodes));
	else if (l->again)
		log_warn("restarting the ranks (%d of %d)", l->attempt + 1, l->o->max_restarts);
	else if (l->o->ended)
		l->o->ended(l->o->user, l->ranks.shared_status, v.code, v.reason);
	return v.code;
}

static int make_shm(struct launcher *l, struct err *err)
{
	return launch_world(l) > 1 ? comm_shm_make(&l->shm_fd, l->ranks.n, err) : 0;
}

static void close_shm(struct launcher *l)
{
	if (l->shm_fd >= 0)
		close(l->shm_fd);
	l->shm_fd = -1;
}

/* Makes the table of children, the ranks' shared memory and the signalfd. */
static int prepare_launcher(struct launcher *l, struct err *err)
{
	int rc = child_ranks_init(&l->ranks, l->o->nproc, err);

	if (!rc)
		rc = make_shm(l, err);
	if (rc)
		return rc;
	rank_context_stop_signals(&l->signals);
	sigprocmask(SIG_BLOCK, &l->signals, NULL); /* the ranks keep these signals blocked */
	sigaddset(&l->signals, SIGCHLD);
	l->signal_fd = signalfd(-1, &l->signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return l->signal_fd < 0 ? err_set_errno(err, errno, "cannot receive signals") : 0;
}

static void free_launcher(struct launcher *l)
{
	close_shm(l);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	child_ranks_done(&l->ranks);
}

static struct rank_context make_rank_context(const struct launcher *l, int rank)
{
	struct rank_context s = { .rank = launch_first_rank(l) + rank,
				  .world = launch_world(l),
				  .local_rank = rank,
				  .local_world = l->ranks.n,
				  .nodes = 1,
				  .net = { .listener = -1 },
				  .shm_fd = l->shm_fd,
				  .attempt = l->attempt,
				  .launched = true,
				  .signal_fd = -1 };

	set_rank_bootstrap(l, &s);
	return s;
}

static int start_all_ranks(struct launcher *l, struct err *err)
{
	const struct child_start o = { .threads = l->o->threads, .close_fd = l->signal_fd,
				       .rank_main = l->o->rank_main, .user = l->o->user };
	int rc = 0;

	l->ranks.first = launch_first_rank(l);
	for (int r = 0; !rc && r < l->ranks.n; r++) {
		struct rank_context s = make_rank_context(l, r);

		rc = child_ranks_start(&l->ranks, &s, &o, err);
	}
	if (rc)
		child_ranks_give_up(&l->ranks);
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
	l->again = l->concluded = false;
	l->failed_s = 0;
	l->others = (struct job_result){ .culprit = -1 };
	l->others_ended = 0;
	child_ranks_reset(&l->ranks);
	close_shm(l);
	return make_shm(l, err);
}

int launch_run(const struct launch_opts *o, struct err *err)
{
	struct launcher l = { .o = o, .nodes = o->nodes, .shm_fd = -1, .signal_fd = -1 };
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
