/* spike.c: outliers of one step, by median and median absolute deviation. */
#include "web/store/points/spike.h"

#include <math.h>
#include <string.h>

#include "tracker/base/array.h"

#define REACH 16
#define FEWEST 8

bool spike_watches(const char *key)
{
	size_t n = strlen(key);

	return n >= 4 && !strcmp(key + n - 4, "loss") && strncmp(key, "epoch/", 6) != 0;
}

/* The distance of p[i] to the median around it; 0 if it is not a spike. */
static double weigh_spike(const struct sum_point *p, size_t n, size_t i)
{
	size_t from = i > REACH ? i - REACH : 0, to = i + REACH < n ? i + REACH + 1 : n, k, count = 0;
	double around[2 * REACH], middle, spread;

	for (k = from; k < to; k++)
		if (k != i && isfinite(p[k].value))
			around[count++] = p[k].value;
	if (count < FEWEST)
		return 0;
	middle = median_of(around, count);
	if (p[i].value <= 2 * fabs(middle))
		return 0;
	for (k = 0; k < count; k++)
		around[k] = fabs(around[k] - middle);
	spread = 1.4826 * median_of(around, count);
	return p[i].value - middle > 6 * spread ? p[i].value - middle : 0;
}

long spike_find(const struct sum_point *p, size_t n, double *ret_weight)
{
	long best = -1;
	double best_weight = 0, weight;
	size_t i;

	for (i = 1; i + 1 < n; i++) {
		double v = p[i].value, before = p[i - 1].value, after = p[i + 1].value;

		if (!isfinite(v) || !isfinite(before) || !isfinite(after) || v <= 2 * before || v <= 2 * after)
			continue;
		weight = weigh_spike(p, n, i);
		if (weight > best_weight) {
			best_weight = weight;
			best = (long)i;
		}
	}
	*ret_weight = best_weight;
	return best;
}
