/* asha.h: selects the next trial of a sweep and its length: asynchronous successive halving (Li et al., "A System for
 * Massively Parallel Hyperparameter Tuning", 2020, algorithm 2). A trial climbs rungs. Of the trials that reached a
 * rung, the best 1/eta are promoted as soon as enough of them are known. With one rung every trial runs to its end.
 * Pure: no processes, no files. */
#ifndef DPT_SWEEP_ASHA_H
#define DPT_SWEEP_ASHA_H

#include <stdbool.h>
#include <stddef.h>

#define ASHA_RUNGS 20

struct asha_trial {
	int rungs;                 /* number of rungs with a result */
	double value[ASHA_RUNGS];  /* by rung; NaN is the worst */
	bool running, failed;      /* a failed trial is not promoted, but its results count */
};

struct asha {
	struct asha_trial *trials;
	size_t count;
	int rungs;     /* 1 to ASHA_RUNGS */
	double eta;    /* above 1 */
	bool maximize;
};

enum asha_next { ASHA_RUN, ASHA_WAIT, ASHA_DONE };

/* ASHA_RUN: run *ret_trial up to rung *ret_rung. ASHA_WAIT: wait for running trials. Promotions come before new trials:
 * the highest rung first, the best trial first. New trials start in their order. */
enum asha_next asha_next(const struct asha *a, size_t *ret_trial, int *ret_rung);

/* Returns the trial with the best value at the highest rung that has one; a->count: none. */
size_t asha_best(const struct asha *a);

#endif
