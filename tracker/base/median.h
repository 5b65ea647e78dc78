/* median.h: numbers in order, and the one in the middle. NaN has no place among them. */
#ifndef DPT_BASE_MEDIAN_H
#define DPT_BASE_MEDIAN_H

#include <stddef.h>

void median_sort(double *v, size_t n);	/* the smallest first */
double median_of(double *v, size_t n); /* sorts v; of an even number the mean of two; NaN without any */

#endif
