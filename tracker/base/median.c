/* median.c: sorts and takes the median. */
#include "tracker/base/median.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles_asc(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void median_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), compare_doubles_asc);
}

double median_of(double *v, size_t n)
{
	if (!n)
		return NAN;
	median_sort(v, n);
	return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2; /* halves: the sum of two may overflow */
}
