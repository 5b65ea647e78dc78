/* test_hooks.h: what tests break in a program on purpose, to see that it is noticed. Without the environment's word nothing
 * happens. */
#ifndef DPT_PROGRAM_TEST_HOOKS_H
#define DPT_PROGRAM_TEST_HOOKS_H

#include "trainer/graph/schedule.h"

/* DPTRAIN_TEST_FAULT: reduce (some gradients are not summed over the ranks), gather (some parameters are stale), norm
 * (sums of squares stay the rank's own), message (a stage is not sent what it waits for), micro (some gradients of a
 * later micro-batch count twice), offload (something that was offloaded is not copied back). Or serial: nothing is
 * wrong, but no collective travels while something is computed. Behind the passes that add such nodes. Returns 0 or the
 * graph's error code. */
int test_hooks_plant(struct graph *g);

/* The same of a schedule with several slots: slot (a backward node works on another micro-batch than its turn's). */
void test_hooks_plant_turns(struct schedule *s);

#endif
