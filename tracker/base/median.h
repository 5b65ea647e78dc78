/* median.h: sorting and the median. Values must not be NaN. */
#ifndef DPT_BASE_MEDIAN_H
#define DPT_BASE_MEDIAN_H

#include <stddef.h>

void median_sort(double *v, size_t n);	/* ascending */
double median_of(double *v, size_t n); /* sorts v; of an even number the mean of the middle two; NaN if n is 0 */

#endif
