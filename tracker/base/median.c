/* median.c: see median.h. */
#include "tracker/base/median.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void median_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_value);
}

double median_of(double *v, size_t n)
{
	if (!n)
		return NAN;
	median_sort(v, n);
	return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2; /* halves: a sum of two may leave the range */
}
