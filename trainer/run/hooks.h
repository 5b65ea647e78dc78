/* hooks.h: test hooks of a run, set by environment variables: it can be slow, or be killed at a given step. Without the
 * variables nothing here has an effect. */
#ifndef DPT_RUN_HOOKS_H
#define DPT_RUN_HOOKS_H

#include <stdint.h>

#include "tracker/base/clock.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/prepare.h"

struct hooks {
	double slow_step_s;  /* DPTRAIN_TEST_SLOW_RANK=rank:ms */
	double slow_copy_s;  /* DPTRAIN_TEST_SLOW_COPY=ms: added to each batch's copy to the device */
	double slow_batch_s; /* DPTRAIN_TEST_SLOW_LOADER=ms: least time to load a batch */
	int die_rank;	     /* DPTRAIN_TEST_DIE=rank:step[:signal] or launcher:… (-1); right after that step */
	int64_t die_step;    /* 0: off */
	int die_signal;
};

struct hooks hooks_read(int rank);
/* DPTRAIN_TEST_PACE: most floating-point operations per second of nodes of host backends, which sleep for the rest of
 * the time; 0: no limit. Step times then follow the schedule, however busy the machine is. */
double hooks_pace(void);
double hooks_slow(double seconds); /* sleeps for one of the times above; returns the seconds that it took */

void hooks_spin(const struct clock_hook *c, double start_s); /* called after a node's work that began then */
/* DPTRAIN_TEST_NAN=rank:node: a kernel of that rank leaves a NaN in its first result. */
bool hooks_spoils(const struct node *n, int rank);
void hooks_spoil(const struct node *n, const struct kernel_args *args);

void hooks_after_step(const struct hooks *h, const struct rank_context *seat, int64_t step);

#endif
