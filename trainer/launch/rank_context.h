/* rank_context.h: what a rank knows of its job whatever started it: its number, where it meets the others, whether somebody
 * asked it to stop, and the board on which it leaves its last words for the launcher. */
#ifndef DPT_LAUNCH_RANK_CONTEXT_H
#define DPT_LAUNCH_RANK_CONTEXT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/flight.h"

#define RANK_CONTEXT_PREEMPTED 75 /* exit code: ended on request, after a checkpoint */

struct board_rank {
	_Atomic int said; /* err is complete */
	_Atomic int idle; /* it has begun nothing that is worth finishing: ctrl-C ends it at once */
	struct err err;
	struct flight flight;
};

struct board { /* in memory shared by launcher and ranks; a rank without launcher has one of its own */
	_Atomic int stop_signal; /* SIGINT, SIGTERM or SIGUSR1 once one came */
	_Atomic int run_open;	 /* rank 0 has opened the tracked run */
	char run_id[33];	 /* of that run */
	int segment;		 /* of that run, opened by this job; its first step and epoch */
	int64_t first_step, first_epoch;
	struct board_rank rank[];
};

struct rank_context {
	int rank, world;
	int local_rank, local_world;
	int nodes;		 /* machines; 1: all ranks are here */
	char node[160];		 /* this one's name among those */
	struct bootstrap_opts net; /* with several: where all ranks meet; what it points to outlives the seat */
	int attempt;		 /* of the job: 0, or how often its ranks have been started before */
	bool launched;		 /* by our own launcher, which watches and has the last word on the status */
	int shm_fd;		 /* shared memory of this machine's ranks, which they meet in; -1 on one rank */
	int signal_fd;		 /* without launcher: where signals arrive; -1 */
	struct board *board;
};

/* The seat of a process that something else started (rank_env.h): meets the others (rendezvous.h), binds itself to its
 * cores, takes the stop signals. rank_context_close gives back what it holds; NULL board is fine. */
struct rank_env;
struct rank_context_opts {
	int threads;
	const char *host; /* of rank 0, with several machines; NULL: as the place says */
	int port;	  /* 0: as the place says */
	const char *key;  /* that the job's ranks know; NULL: made of the place's job */
	double wait_s;	  /* longest for the others to come */
};
int rank_context_open(struct rank_context *ret, const struct rank_env *p, const struct rank_context_opts *o, struct err *err);
void rank_context_close(struct rank_context *s);

/* Instead of rank_context_open, of a rank that cannot take part: the others end at once, those of rank 0 with its reason. Takes
 * a moment when they do not come. */
void rank_context_refuse(const struct rank_env *p, const struct err *why);

/* Binds the process to its share of the cores, so that ranks do not push each other around. Not when ranks or threads
 * are more than the cores are. */
void rank_context_bind(const struct rank_context *s, int threads);

/* The signals that ask for an end, left to a signalfd; a closed terminal or pipe must not end a run. */
void rank_context_stop_signals(sigset_t *set);

/* The signal that asked for an end, 0 none. Without launcher it is looked up here; a second one then kills at once. */
int rank_context_stop(const struct rank_context *s);

/* The rank's own part of the board. */
struct board_rank *rank_context_own(const struct rank_context *s);

/* Leaves e on the board (launched) for the launcher to print; returns the exit code that belongs to it. */
int rank_context_fail(const struct rank_context *s, const struct err *e);

/* 2 for bad usage or input, 1 for everything else. */
int rank_context_exit_code(const struct err *e);

#endif
