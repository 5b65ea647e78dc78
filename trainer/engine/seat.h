/* seat.h: what a rank knows of its job whatever started it: its number, where it meets the others, whether somebody
 * asked it to stop, and the board on which it leaves its last words for the launcher. */
#ifndef DPT_ENGINE_SEAT_H
#define DPT_ENGINE_SEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"

#define SEAT_PREEMPTED 75 /* exit code: ended on request, after a checkpoint */
#define SEAT_LANES 2 /* communicators of a rank: one for each stream */

struct board_rank {
	_Atomic int said; /* err is complete */
	struct err err;
};

struct board { /* in memory shared by launcher and ranks; a rank without launcher has one of its own */
	_Atomic int stop_signal; /* SIGINT, SIGTERM or SIGUSR1 once one came */
	_Atomic int run_open;	 /* rank 0 has opened the tracked run */
	char run_id[33];	 /* of that run */
	int segment;		 /* of that run, opened by this job; its first step and epoch */
	int64_t first_step, first_epoch;
	struct board_rank rank[];
};

struct seat {
	int rank, world;
	int local_rank, local_world;
	bool launched;		 /* by our own launcher, which watches and has the last word on the status */
	int lane_fd[SEAT_LANES]; /* shared memory made by the launcher; -1 */
	const char *job;	 /* its name, when there is no such memory */
	int signal_fd;		 /* without launcher: where signals arrive; -1 */
	struct board *board;
};

/* The signal that asked for an end, 0 none. Without launcher it is looked up here; a second one then kills at once. */
int seat_stop(const struct seat *s);

/* Leaves e on the board (launched) for the launcher to print; returns the exit code that belongs to it. */
int seat_fail(const struct seat *s, const struct err *e);

/* 2 for bad usage or input, 1 for everything else. */
int seat_exit_code(const struct err *e);

#endif
