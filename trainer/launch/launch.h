/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: starts the ranks of this machine and watches them until all have ended. The launcher is not a rank, has no
 * threads, and its only children are the ranks, forked in rank order. A failed rank ends the job within 5 s, on all
 * machines. The launcher prints which rank failed, how, and its last lines. */
#ifndef DPT_LAUNCH_LAUNCH_H
#define DPT_LAUNCH_LAUNCH_H

#include "trainer/launch/rank_context.h"

struct launch_opts {
	int nproc;		  /* ranks of this machine */
	struct node_group *nodes; /* launchers of the other machines (node_group.h); NULL: one machine. Borrowed */
	int nodes_least;	  /* fewest machines with which the job may continue, when max_restarts allows it */
	double heartbeat_s;	  /* a rank or another machine's launcher that is silent for longer is given up */
	int max_restarts;	  /* restarts of all ranks after a failure */
	int threads; /* threads of a rank; ranks are bound to their share of the cores if it has that many */
	/* Runs a rank in its own process; returns its exit code. */
	int (*rank_main)(void *user, struct rank_context *context);
	/* Machines are lost and the job restarts with that many ranks; rank_main must use the new number. */
	int (*resized)(void *user, int world, struct err *err);
	/* Called after all ranks have ended, with the status of the job and a line with the reason. */
	void (*ended)(void *user, const struct shared_status *shared_status, int exit_code, const char *reason);
	void *user;
};

/* Returns the exit code of the job: 0, 1, 2, 75, 130. Negative when it could not be started (err). */
int launch_run(const struct launch_opts *o, struct err *err);

#endif
