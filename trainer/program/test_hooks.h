/* test_hooks.h: test hooks that break a program on purpose, so that tests see whether the fault is noticed. Does
 * nothing without the environment variable. */
#ifndef DPT_PROGRAM_TEST_HOOKS_H
#define DPT_PROGRAM_TEST_HOOKS_H

#include "trainer/graph/schedule.h"

/* DPTRAIN_TEST_FAULT: reduce (some gradients are not summed over the ranks), gather (some parameters are stale), norm
 * (sums of squares are of one rank only), message (a stage is not sent what it waits for), micro (some gradients of a
 * later micro-batch count twice), offload (an offloaded tensor is not copied back). serial is no fault: no collective
 * runs while something is computed. Call it after the passes that add such nodes. Returns 0 or the graph's error
 * code. */
int test_hooks_plant(struct graph *g);

/* The same for a schedule with several slots: slot (a backward node works on another micro-batch than scheduled). */
void test_hooks_plant_turns(struct schedule *s);

#endif
