/* spread.h: what the values of one series, which depend on each other, say of how sure their mean is.
 * Pure arithmetic; knows neither runs nor steps. */
#ifndef DPT_INSIGHT_SPREAD_H
#define DPT_INSIGHT_SPREAD_H

#include <stddef.h>

struct spread {
	double mean;
	double variance;  /* of the mean: what the stationary bootstrap gives */
	double effective; /* independent values that would say as much; at most n */
	double block;     /* mean length of a block; n / block are its degrees of freedom */
};

/* The variance of the mean under the stationary bootstrap (Politis & Romano 1994, lemma 1: in closed form, nothing is
 * drawn) with the block length of Politis & White 2004 as corrected by Patton, Politis & White 2009. x: n finite values
 * in order; n = 0 gives NaN, n < 8 no variance (NaN) and no effective values. */
void spread_of(const double *x, size_t n, struct spread *ret);

#endif
