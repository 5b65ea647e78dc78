/* SPDX-License-Identifier: Apache-2.0 */
/* child_ranks.h: the ranks of this machine as children of the launcher: forked in rank order, their output relayed,
 * their heartbeats checked, reaped. Knows no other machines and nothing of the job's result. */
#ifndef DPT_LAUNCH_CHILD_RANKS_H
#define DPT_LAUNCH_CHILD_RANKS_H

#include <poll.h>

#include "trainer/launch/job_result.h"
#include "trainer/launch/rank_context.h"

struct child_rank;

struct child_ranks { /* zeroed before child_ranks_init; the caller may read all */
	int n;
	struct shared_status *shared_status; /* status shared with the ranks */
	size_t shared_status_bytes;
	struct child_rank *child;
	struct rank_end *end; /* of each child that has ended */
	int first;	      /* number of the first child in the job, for messages */
	double checked_s;     /* last check of the heartbeats */
	bool killed;	      /* SIGKILL was sent to the ranks */
};

/* Makes the shared status and the table of n children. Call child_ranks_done also after a failure. */
int child_ranks_init(struct child_ranks *c, int n, struct err *err);
void child_ranks_done(struct child_ranks *c);

/* Forgets the children, which have ended, before they are started again. */
void child_ranks_reset(struct child_ranks *c);

struct child_start {
	int threads;  /* see launch.h */
	int close_fd; /* of the launcher, closed in the child */
	int (*rank_main)(void *user, struct rank_context *context);
	void *user;
};

/* Forks the rank of this context, which is complete up to the shared_status, and relays its stderr, each line with the
 * rank's number where the job has several. */
int child_ranks_start(struct child_ranks *c, struct rank_context *s, const struct child_start *o, struct err *err);

void child_ranks_kill(struct child_ranks *c);

/* Ends the ranks of a start that failed: those that run are killed and reaped. */
void child_ranks_give_up(struct child_ranks *c);

/* Returns the number of ranks that run. ended is called for each that has ended since the last call. */
int child_ranks_reap(struct child_ranks *c, void (*ended)(void *user, int rank), void *user);

/* Returns true if no running rank has begun work that is worth finishing. */
bool child_ranks_idle(const struct child_ranks *c);

/* Describes, for a message, the collective in which another rank than that waits: "; rank 1 waits in all-reduce of …";
 * "": none waits. */
void child_ranks_waiting(const struct child_ranks *c, int silent, char *text, size_t n);

/* Warns of a rank without a heartbeat for 3 s; after heartbeat_s it is killed, with that as its last words. */
void child_ranks_check_pulses(struct child_ranks *c, double heartbeat_s);

/* Fills n elements of fds for poll(2), and relays what the ranks have printed. */
void child_ranks_poll(const struct child_ranks *c, struct pollfd *fds);
void child_ranks_relay(struct child_ranks *c);

/* Prints what may explain the end of a rank: its last lines where it left no error, and its last collectives where a
 * signal ended it. */
void child_ranks_print_last(const struct child_ranks *c, int rank);

#endif
