/* warmup.h: how much of the beginning of a run is warm-up: the stated rule by which steps are left out. */
#ifndef DPT_INSIGHT_WARMUP_H
#define DPT_INSIGHT_WARMUP_H

#include <stddef.h>

#define WARMUP_BATCH 5 /* values of one median */

/* The rule, for people. */
#define WARMUP_RULE                                                                                              \
	"the first step, steps until the loader's threads have settled, and what MSER-5 finds on medians of 5 steps" \
	" in the first half of the run"

/* How many of the n values at the beginning differ from the rest: the cut d, a multiple of WARMUP_BATCH and at most
 * half of n, that makes the variance of the rest divided by its length least (MSER-5, White 1997), on medians of
 * batches, so that a slow step now and then is no warm-up. scratch: room for n / WARMUP_BATCH values. Fewer than 8
 * batches: 0. */
size_t warmup_length(const double *x, size_t n, double *scratch);

#endif
