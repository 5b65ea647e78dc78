/* SPDX-License-Identifier: Apache-2.0 */
/* rank_context.h: the rank context: what a rank knows of its job, however it was started: its number, how it connects
 * to the other ranks, whether it was asked to stop, and the shared status, in which it leaves its last error for the
 * launcher. */
#ifndef DPT_LAUNCH_RANK_CONTEXT_H
#define DPT_LAUNCH_RANK_CONTEXT_H

#include <signal.h>

#include "trainer/comm/bootstrap.h"
#include "trainer/comm/flight.h"

#define RANK_CONTEXT_PREEMPTED 75 /* exit code: ended on request, after a checkpoint */

struct shared_status_rank {
	_Atomic int said; /* err is complete */
	_Atomic int idle; /* it has begun no work that is worth finishing: ctrl-C ends it at once */
	struct err err;
	struct flight flight;
};

struct shared_status {		 /* status shared by the ranks of a machine, and by their launcher */
	_Atomic int stop_signal; /* SIGINT, SIGTERM or SIGUSR1 once received */
	_Atomic int run_open;	 /* rank 0 has opened the tracked run */
	char run_id[33];	 /* id of that run */
	int segment;		 /* segment of that run that this job opened; its first step and epoch */
	int64_t first_step, first_epoch;
	struct shared_status_rank rank[];
};

struct rank_context {
	int rank, world;
	int local_rank, local_world;
	int nodes;		   /* machines; 1: all ranks are on this one */
	char node[160];		   /* name of this machine in the job */
	struct bootstrap_opts net; /* how all ranks connect on several machines; its pointers outlive the context */
	int attempt;		   /* how often the ranks of the job have been restarted */
	bool launched;		   /* started by dptrain's launcher, which watches the rank and sets the final status */
	int shm_fd;		   /* shared memory of this machine's ranks; -1 with one rank */
	int signal_fd;		   /* receives signals if there is no launcher; else -1 */
	struct shared_status *shared_status;
};

/* Opens the context of a process that another program started (rank_env.h): connects to the other ranks of this machine
 * (bootstrap.h), binds itself to its cores, blocks the stop signals. rank_context_close frees it; shared_status may be
 * NULL.
 */
struct rank_env;
struct rank_context_opts {
	int threads;
	const char *host; /* address of rank 0, with several machines; NULL: from the place */
	int port;	  /* 0: from the place */
	const char *key;  /* secret of the job's ranks; NULL: derived from the place's job */
	double wait_s;	  /* longest wait for the other ranks */
};
int rank_context_open(struct rank_context *ret, const struct rank_env *p, const struct rank_context_opts *o,
		      struct err *err);
void rank_context_close(struct rank_context *s);

/* Called instead of rank_context_open by a rank that cannot take part: the other ranks end at once, with its reason if
 * it is rank 0. Waits a moment when they do not start. */
void rank_context_refuse(const struct rank_env *p, const struct err *why);

/* Binds the process to its share of the cores, so that the scheduler does not move ranks onto each other. Does nothing
 * when there are more ranks or threads than cores. */
void rank_context_bind(const struct rank_context *s, int threads);

/* Lists the signals that request an end and are read from a signalfd. A closed terminal or pipe must not end a run. */
void rank_context_stop_signals(sigset_t *set);

/* Keeps the first of them, so that a command can remove its unfinished files; a second one ends the process. */
void rank_context_keep_stop(void);
int rank_context_kept_stop(void); /* 0: none */

/* Returns the signal that requested an end; 0: none. Without launcher it is read here, and a second signal kills at
 * once. */
int rank_context_stop(const struct rank_context *s);

/* Returns this rank's part of the shared status. */
struct shared_status_rank *rank_context_own(const struct rank_context *s);

/* Stores e in the shared status for the launcher to print; returns the matching exit code. */
int rank_context_fail(const struct rank_context *s, const struct err *e);

/* Returns 2 for bad usage or input, else 1. */
int rank_context_exit_code(const struct err *e);

#endif
