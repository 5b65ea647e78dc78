/* warmup.c: finds the warm-up by MSER-5 on medians of batches. */
#include "tracker/insight/warmup.h"

#include <math.h>

enum { BATCHES_LEAST = 8 };

static double find_batch_median(const double *x)
{
	double v[WARMUP_BATCH];

	for (int i = 0; i < WARMUP_BATCH; i++) {
		int at = i;

		for (; at > 0 && v[at - 1] > x[i]; at--)
			v[at] = v[at - 1];
		v[at] = x[i];
	}
	return v[WARMUP_BATCH / 2];
}

size_t warmup_length(const double *x, size_t n, double *scratch)
{
	size_t batches = n / WARMUP_BATCH, best = 0;
	double sum = 0, squares = 0, least = INFINITY, origin;

	if (batches < BATCHES_LEAST)
		return 0;
	/* Batches end with the last value, so that an incomplete one is at the beginning. */
	x += n - batches * WARMUP_BATCH;
	for (size_t i = 0; i < batches; i++)
		scratch[i] = find_batch_median(x + i * WARMUP_BATCH);
	origin = scratch[batches - 1];
	for (size_t i = batches; i-- > 0;) {
		double v = scratch[i] - origin, count = (double)(batches - i), error;

		sum += v;
		squares += v * v;
		error = (squares - sum * sum / count) / (count * count);
		if (i <= batches / 2 && error <= least) {
			least = error;
			best = i;
		}
	}
	return best ? n - (batches - best) * WARMUP_BATCH : 0;
}
