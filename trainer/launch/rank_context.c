/* SPDX-License-Identifier: Apache-2.0 */
/* rank_context.c: opens the rank context: cores, signals, shared memory; stores the rank's last error. */
#include "trainer/launch/rank_context.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "trainer/launch/machine.h"
#include "trainer/launch/rank_env.h"

#define JOB_BYTES 112
#define REFUSE_WAIT_S 3.0 /* longest wait for rank 0 while reporting a failure */

void rank_context_bind(const struct rank_context *s, int threads)
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
		if (CPU_ISSET(cpu, &all) && seen >= first && seen < last)
			CPU_SET(cpu, &own);
		seen += CPU_ISSET(cpu, &all) ? 1 : 0;
	}
	sched_setaffinity(0, sizeof(own), &own);
}

void rank_context_stop_signals(sigset_t *set)
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

static volatile sig_atomic_t kept_stop;

static void keep_stop(int number)
{
	kept_stop = number;
}

void rank_context_keep_stop(void)
{
	const struct sigaction action = { .sa_handler = keep_stop, .sa_flags = SA_RESETHAND | SA_RESTART };
	sigset_t stops;

	rank_context_stop_signals(&stops);
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&stops, number) == 1)
			sigaction(number, &action, NULL);
}

int rank_context_kept_stop(void)
{
	return kept_stop;
}

static void warn_waiting(const char *origin)
{
	log_warn("waiting for the other ranks: %s", origin);
}

static size_t shared_status_bytes(const struct rank_context *s)
{
	return sizeof(*s->shared_status) + (size_t)s->local_world * sizeof(struct shared_status_rank);
}

/* Makes the memory of the ranks' communicators (fd[0]) and of their status (fd[1]). */
static int make_memory(const struct rank_context *s, int fd[2], struct err *err)
{
	int rc = comm_shm_make(&fd[0], s->local_world, err);

	if (rc)
		return rc;
	fd[1] = memfd_create("dptrain-status", MFD_CLOEXEC);
	if (fd[1] >= 0 && !ftruncate(fd[1], (off_t)shared_status_bytes(s)))
		return 0;
	return err_set_errno(err, errno, "cannot get memory for the status of the ranks");
}

static int map_shared_status(struct rank_context *s, int fd, struct err *err)
{
	void *at = mmap(NULL, shared_status_bytes(s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return err_set_errno(err, errno, "cannot use the memory for the status of the ranks");
	s->shared_status = at;
	return 0;
}

/* The meeting of the ranks of the job that share memory: processes of one user, which need no other key. */
static struct bootstrap_opts local_meeting(const struct rank_env *p, char job[JOB_BYTES])
{
	if (p->group < 0)
		snprintf(job, JOB_BYTES, "%s", p->job);
	else
		snprintf(job, JOB_BYTES, "%s-%d", p->job, p->group);
	return (struct bootstrap_opts){ .what = "rank", .job = job, .key = job, .listener = -1, .self = p->local_rank,
					.count = p->local_world, .first = p->rank - p->local_rank,
					.origin = p->origin, .waits = warn_waiting };
}

/* The machine's first rank makes the memory. When it cannot, or has failed already, the other ranks here receive the
 * reason. The status is shared, because a request to end may be sent to one rank only. */
static int share_memory(struct rank_context *s, const struct rank_env *p, double wait_s, const struct err *before,
			struct err *err)
{
	char job[JOB_BYTES];
	struct bootstrap_opts o = local_meeting(p, job);
	struct err failure = *before;
	struct bootstrap *x = NULL;
	int fd[2] = { -1, -1 }, rc;

	if (s->local_rank == 0 && !failure.code && make_memory(s, fd, &failure))
		err_prefix(&failure, "rank %d", s->rank);
	o.wait_s = wait_s;
	o.failure = &failure;
	rc = bootstrap_open(&x, &o, err);
	if (!rc)
		rc = bootstrap_share_fds(x, fd, 2, err);
	bootstrap_close(x);
	s->shm_fd = fd[0];
	if (!rc)
		rc = map_shared_status(s, fd[1], err);
	if (fd[1] >= 0)
		close(fd[1]);
	return rc;
}

/* Sets how all ranks will connect; rank 0 listens from now on. */
static int open_rank_bootstrap(struct rank_context *s, const struct rank_env *p, const struct rank_context_opts *o,
			       struct err *err)
{
	const char *host = o->host ? o->host : p->master;
	int rc;

	if (p->nodes == 1)
		return 0;
	if (!host[0])
		return err_set(err, ERR_USAGE, "%s started %d ranks on several machines without the address of "
			       "rank 0: add --master-addr ADDRESS", p->source, p->world);
	s->net = (struct bootstrap_opts){ .what = "rank",
					  .host = host,
					  .port = o->port ? o->port : p->port,
					  .listener = -1,
					  .self = p->rank,
					  .count = p->world,
					  .key = o->key ? o->key : p->job,
					  .wait_s = o->wait_s };
	if (p->rank > 0)
		return 0;
	rc = tcp_listen(host, s->net.port, &s->net.listener, err);
	if (rc == ERR_NOENT)
		return err_set(err, ERR_USAGE, "rank 0: %.200s is not an address of this machine: set --master-addr",
			       host);
	return rc ? err_prefix(err, "rank 0") : 0;
}

void rank_context_refuse(const struct rank_env *p, const struct err *why)
{
	char job[JOB_BYTES];
	struct bootstrap_opts o = local_meeting(p, job);
	struct err ignored = ERR_INIT;
	struct bootstrap *x;

	o.wait_s = REFUSE_WAIT_S;
	o.failure = why;
	if (p->local_world > 1)
		bootstrap_open(&x, &o, &ignored);
}

static int open_signal_fd(struct rank_context *s, struct err *err)
{
	sigset_t set;

	rank_context_stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return s->signal_fd < 0 ? err_set_errno(err, errno, "cannot receive signals") : 0;
}

int rank_context_open(struct rank_context *ret, const struct rank_env *p, const struct rank_context_opts *o,
		      struct err *err)
{
	struct rank_context s = { .rank = p->rank,
				  .world = p->world,
				  .local_rank = p->local_rank,
				  .local_world = p->local_world,
				  .nodes = p->nodes,
				  .net = { .listener = -1 },
				  .shm_fd = -1,
				  .signal_fd = -1 };
	struct err failure = ERR_INIT;
	cpu_set_t all;
	int rc;

	machine_node(s.node, sizeof(s.node));
	if (p->group >= 0)
		snprintf(s.node + strlen(s.node), sizeof(s.node) - strlen(s.node), " %d", p->group);
	open_rank_bootstrap(&s, p, o, &failure);
	/* signals still end the process at once: no work has begun */
	rc = share_memory(&s, p, o->wait_s, &failure, err);
	if (!rc)
		rc = open_signal_fd(&s, err);
	if (rc) {
		rank_context_close(&s);
		return rc;
	}
	if (sched_getaffinity(0, sizeof(all), &all) == 0 && CPU_COUNT(&all) == sysconf(_SC_NPROCESSORS_ONLN))
		rank_context_bind(&s, o->threads); /* no launcher has bound the ranks */
	*ret = s;
	return 0;
}

void rank_context_close(struct rank_context *s)
{
	if (s->shm_fd >= 0)
		close(s->shm_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->net.listener >= 0)
		close(s->net.listener);
	if (s->shared_status)
		munmap(s->shared_status, shared_status_bytes(s));
}

int rank_context_stop(const struct rank_context *s)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (s->signal_fd >= 0 && read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		atomic_store(&s->shared_status->stop_signal, (int)info.ssi_signo);
		rank_context_stop_signals(&set);
		sigdelset(&set, SIGHUP); /* a closed terminal may be reported twice */
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	return atomic_load(&s->shared_status->stop_signal);
}

int rank_context_exit_code(const struct err *e)
{
	return e->code == ERR_USAGE ? 2 : 1;
}

struct shared_status_rank *rank_context_own(const struct rank_context *s)
{
	return &s->shared_status->rank[s->local_rank];
}

int rank_context_fail(const struct rank_context *s, const struct err *e)
{
	struct shared_status_rank *b = rank_context_own(s);

	b->err = *e;
	atomic_store(&b->said, 1);
	return rank_context_exit_code(e);
}
