/* hooks.h: what tests ask of a run through the environment: to be slow, to be killed at a step that the test knows.
 * Without those variables nothing here does anything. */
#ifndef DPT_RUN_HOOKS_H
#define DPT_RUN_HOOKS_H

#include <stdint.h>

#include "tracker/base/clock.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/prepare.h"

struct hooks {
	double slow_step_s;  /* DPTRAIN_TEST_SLOW_RANK=rank:ms */
	double slow_copy_s;  /* DPTRAIN_TEST_SLOW_COPY=ms: what a batch takes longer on its way to the device */
	double slow_batch_s; /* DPTRAIN_TEST_SLOW_LOADER=ms: what a batch takes at least to be loaded */
	int die_rank;	     /* DPTRAIN_TEST_DIE=rank:step[:signal] or launcher:… (-1); right after that step */
	int64_t die_step;    /* 0: nobody dies */
	int die_signal;
};

struct hooks hooks_read(int rank);
/* DPTRAIN_TEST_PACE: floating-point operations a second that nodes of host backends do at most, as they sleep for the
 * rest; 0: as many as they can. Steps take what a schedule says then, however busy the machine is. */
double hooks_pace(void);
double hooks_slow(double seconds); /* sleeps so long, of those above; how long it took */

void hooks_spin(const struct clock_hook *c, double start_s); /* behind a node's work that began then */
/* DPTRAIN_TEST_NAN=rank:node: a kernel of that rank that leaves a number in its first result that is none. */
bool hooks_spoils(const struct node *n, int rank);
void hooks_spoil(const struct node *n, const struct kernel_args *args);

void hooks_after_step(const struct hooks *h, const struct rank_context *seat, int64_t step);

#endif
