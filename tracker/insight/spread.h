/* SPDX-License-Identifier: Apache-2.0 */
/* spread.h: the uncertainty of the mean of one series whose values depend on each other, and Student's t distribution.
 * Pure arithmetic, independent of runs and steps. */
#ifndef DPT_INSIGHT_SPREAD_H
#define DPT_INSIGHT_SPREAD_H

#include <stddef.h>

struct spread {
	double mean;
	double variance;  /* of the mean, as the stationary bootstrap estimates it */
	double effective; /* number of independent values with the same information; at most n */
	double block;	  /* mean length of a block; there are n / block degrees of freedom */
};

/* Estimates the variance of the mean with the stationary bootstrap (Politis & Romano 1994, lemma 1: closed form, no
 * sampling) and the block length of Politis & White 2004 as corrected by Patton, Politis & White 2009. x: n finite
 * values in order. n = 0 gives NaN; n < 8 no variance (NaN) and no effective values. */
void spread_of(const double *x, size_t n, struct spread *ret);

/* Returns the t with t_distribution_inside(t, df) = confidence, 0 < confidence < 1. */
double t_distribution_quantile(double confidence, double df);

#endif
