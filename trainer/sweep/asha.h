/* asha.h: which trial of a sweep goes on, and how far: asynchronous successive halving (Li et al., "A System for
 * Massively Parallel Hyperparameter Tuning", 2020, algorithm 2). A trial climbs rungs; of those that reached one, the
 * best 1/eta may climb on, as soon as that is known of enough of them. With one rung every trial simply runs. Pure: no
 * processes, no files. */
#ifndef DPT_SWEEP_ASHA_H
#define DPT_SWEEP_ASHA_H

#include <stdbool.h>
#include <stddef.h>

#define ASHA_RUNGS 20

struct asha_trial {
	int rungs;                 /* whose results it has: 0 none */
	double value[ASHA_RUNGS];  /* by rung; NaN is the worst */
	bool running, failed;      /* a failed one goes nowhere, what it reached counts */
};

struct asha {
	struct asha_trial *trials;
	size_t count;
	int rungs;     /* 1 to ASHA_RUNGS */
	double eta;    /* above 1 */
	bool maximize;
};

enum asha_next { ASHA_RUN, ASHA_WAIT, ASHA_DONE };

/* ASHA_RUN: *ret_trial is to reach rung *ret_rung. ASHA_WAIT: what runs decides. Promotions come before new trials, of
 * the highest rung first, the best first; new trials in their order. */
enum asha_next asha_next(const struct asha *a, size_t *ret_trial, int *ret_rung);

/* The trial with the best value at the highest rung that any reached; a->count when none has one. */
size_t asha_best(const struct asha *a);

#endif
