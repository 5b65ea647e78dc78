/* launch.h: starts the ranks of this machine and watches them until all have ended. The launcher is no rank, has no
 * threads, and its only children are the ranks, forked in rank order. A rank that fails ends the job within 5 s, on all
 * machines. It prints (it is the program's mouth for what goes wrong): which rank failed, how, and its last lines. */
#ifndef DPT_LAUNCH_LAUNCH_H
#define DPT_LAUNCH_LAUNCH_H

#include "trainer/launch/rank_context.h"

struct launch_opts {
	int nproc;	     /* ranks of this machine */
	struct node_group *nodes; /* the other machines' launchers (node_group.h); NULL: there are none. Borrowed */
	int nodes_least;     /* machines that a job may go on with, when others are lost and max_restarts allows it */
	double heartbeat_s;  /* a rank or another machine's launcher that is silent for longer is given up */
	int max_restarts;    /* of all ranks, when one has failed */
	int threads; /* of a rank: ranks are bound to their share of the cores when it holds so many */
	/* The rank's whole life, in its own process; returns its exit code. */
	int (*rank_main)(void *user, struct rank_context *seat);
	/* Machines are lost, and the job starts again as so many ranks; rank_main knows from then on. */
	int (*resized)(void *user, int world, struct err *err);
	/* Once all ranks have ended: the run is open (board->run_open), status and a line that says why. */
	void (*ended)(void *user, const struct board *board, int exit_code, const char *reason);
	void *user;
};

/* Exit code of the job: 0, 1, 2, 75, 130. Negative when it could not be started (err). */
int launch_run(const struct launch_opts *o, struct err *err);

#endif
