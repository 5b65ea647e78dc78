/* SPDX-License-Identifier: Apache-2.0 */
/* array.c: grows arrays; sorts doubles and takes their median. */
#include "tracker/base/array.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_ITEMS 16u

void *array_grow(void *items, size_t *cap, size_t want, size_t item_bytes)
{
	size_t more = *cap > FIRST_ITEMS / 2 ? *cap : FIRST_ITEMS / 2, bytes;
	void *grown;

	if (items && want <= *cap)
		return items;
	if (__builtin_mul_overflow(more, 2, &more))
		return NULL;
	more = more < want ? want : more;
	if (__builtin_mul_overflow(more, item_bytes, &bytes))
		return NULL;
	grown = realloc(items, bytes);
	if (grown)
		*cap = more;
	return grown;
}

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

double median_robust(double *v, size_t n, double *ret_deviation)
{
	const double middle = median_of(v, n);

	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - middle);
	*ret_deviation = MEDIAN_MAD_DEVIATION * median_of(v, n);
	return middle;
}
