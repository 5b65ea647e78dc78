/* SPDX-License-Identifier: Apache-2.0 */
/* test_hooks.h: every hook of dptrain for tests, set by environment variables: a program is broken on purpose, a run is
 * slow, is killed at a step, or believes that its machine has less memory. Without the variables nothing here has an
 * effect. */
#ifndef DPT_PROGRAM_TEST_HOOKS_H
#define DPT_PROGRAM_TEST_HOOKS_H

#include "tracker/base/clock.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/prepare.h"

/* DPTRAIN_TEST_FAULT: reduce (some gradients are not summed over the ranks), gather (some parameters are stale), norm
 * (sums of squares are of one rank only), message (a stage is not sent what it waits for), micro (some gradients of a
 * later micro-batch count twice), offload (an offloaded tensor is not copied back). serial is no fault: no collective
 * runs while something is computed. Call it after the passes that add such nodes. Returns 0 or the graph's error
 * code. */
int test_hooks_plant(struct graph *g);

/* The same for a schedule with several slots: slot (a backward node works on another micro-batch than scheduled). */
void test_hooks_plant_turns(struct schedule *s);

struct test_hooks {
	double slow_step_s;  /* DPTRAIN_TEST_SLOW_RANK=rank:ms */
	double slow_copy_s;  /* DPTRAIN_TEST_SLOW_COPY=ms: added to each batch's copy to the device */
	double slow_batch_s; /* DPTRAIN_TEST_SLOW_LOADER=ms: least time to load a batch */
	int die_rank;	     /* DPTRAIN_TEST_DIE=rank:step[:signal] or launcher:… (-1); right after that step */
	int64_t die_step;    /* 0: off */
	int die_signal;
};

struct test_hooks test_hooks_read(int rank);

/* DPTRAIN_TEST_PACE: most floating-point operations per second of nodes of host backends, which sleep for the rest of
 * the time; 0: no limit. Step times then follow the schedule, however busy the machine is. */
double test_hooks_pace(void);
double test_hooks_slow(double seconds); /* sleeps for one of the times above; returns the seconds that it took */
void test_hooks_spin(const struct clock_hook *c, double start_s); /* called after a node's work that began then */

/* DPTRAIN_TEST_NAN=rank:node: a kernel of that rank leaves a NaN in its first result. */
bool test_hooks_spoils(const struct node *n, int rank);
void test_hooks_spoil(const struct node *n, const struct kernel_args *args);

/* Ends the process, or the launcher, after the step that DPTRAIN_TEST_DIE names. */
void test_hooks_after_step(const struct test_hooks *h, const struct rank_context *seat, int64_t step);

int64_t test_hooks_memory(void);      /* DPTRAIN_TEST_MEMORY=bytes that the machine has available; -1: as it says */
size_t test_hooks_subjects(size_t n); /* DPTRAIN_TEST_CALIBRATE=subjects to calibrate, of n */

#endif
