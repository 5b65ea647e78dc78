/* warmup.h: determines how many of a run's first steps are warm-up, by a documented rule. */
#ifndef DPT_INSIGHT_WARMUP_H
#define DPT_INSIGHT_WARMUP_H

#include <stddef.h>

#define WARMUP_BATCH 5 /* values of one median */

/* The rule as text. */
#define WARMUP_RULE                                                                                              \
	"the first step, steps until the number of loader threads is stable, and what MSER-5 finds on medians of 5 " \
	"steps in the first half of the run"

/* Returns how many of the n values at the beginning differ from the rest. The cut d, a multiple of WARMUP_BATCH and at
 * most n / 2, minimises the variance of the rest divided by its length (MSER-5, White 1997). It uses medians of
 * batches, so that an occasional slow step is not warm-up. scratch: space for n / WARMUP_BATCH values. With fewer than
 * 8 batches: 0. */
size_t warmup_length(const double *x, size_t n, double *scratch);

#endif
