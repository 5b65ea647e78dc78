/* spread.c: estimates the variance of the mean of dependent values. */
#include "tracker/insight/spread.h"

#include <math.h>

#define SIGNIFICANT 2.0    /* Politis & White's c: autocorrelations below c * sqrt(log10(n) / n) count as zero */
#define WEIGHT_LEAST 1e-3  /* lags with less weight are skipped */

struct lags {
	const double *x;
	size_t n;
	double mean, at_zero;
};

/* Autocovariance, with divisor n. Four independent sums, for instruction-level parallelism. */
static double compute_autocovariance(const struct lags *l, size_t lag)
{
	double sum[4] = { 0 };
	size_t n = l->n - lag;

	for (size_t i = 0; i < n; i++)
		sum[i & 3] += (l->x[i] - l->mean) * (l->x[i + lag] - l->mean);
	return (sum[0] + sum[1] + sum[2] + sum[3]) / (double)l->n;
}

/* Returns the smallest lag that is followed by `quiet` insignificant autocorrelations in a row; between 1 and most. */
static size_t find_last_lag(const struct lags *l, size_t most)
{
	double limit = SIGNIFICANT * sqrt(log10((double)l->n) / (double)l->n) * l->at_zero;
	size_t quiet = (size_t)fmax(5, sqrt(log10((double)l->n))), row = 0;

	for (size_t lag = 1; lag <= most + quiet && lag < l->n; lag++) {
		row = fabs(compute_autocovariance(l, lag)) < limit ? row + 1 : 0;
		if (row == quiet)
			return lag > quiet ? lag - quiet : 1;
	}
	return most;
}

static double flat_top_weight(double t)
{
	return t <= 0.5 ? 1 : 2 * (1 - t);
}

static double choose_block_length(const struct lags *l)
{
	double n = (double)l->n, most = fmin(3 * sqrt(n), n / 3), bend = 0, sum = l->at_zero, b;
	size_t window = 2 * find_last_lag(l, (size_t)ceil(sqrt(n)));

	for (size_t lag = 1; lag < window && lag < l->n; lag++) {
		double r = flat_top_weight((double)lag / (double)window) * compute_autocovariance(l, lag);

		sum += 2 * r;
		bend += 2 * (double)lag * r;
	}
	if (!(fabs(sum) > 0))
		return most;
	b = cbrt(bend * bend / (sum * sum) * n); /* 2 G^2 / D with D = 2 g(0)^2 */
	return fmax(1, fmin(b, most));
}

static double estimate_long_run_variance(const struct lags *l, double block)
{
	double stay = 1 - 1 / block, n = (double)l->n, sum = l->at_zero, weight = 1;

	for (size_t lag = 1; lag < l->n && weight > WEIGHT_LEAST; lag++) {
		weight *= stay;
		sum += 2 * (1 - (double)lag / n) * weight * compute_autocovariance(l, lag);
	}
	return sum > 0 ? sum : l->at_zero;
}

void spread_of(const double *x, size_t n, struct spread *ret)
{
	struct lags l = { .x = x, .n = n };
	double variance;

	*ret = (struct spread){ .mean = NAN, .variance = NAN };
	for (size_t i = 0; i < n; i++)
		l.mean += x[i] / (double)n;
	if (n)
		ret->mean = l.mean;
	if (n < 8)
		return;
	l.at_zero = compute_autocovariance(&l, 0);
	ret->block = 1;
	ret->effective = (double)n;
	ret->variance = 0;
	if (!(l.at_zero > 0))
		return; /* all equal */
	ret->block = choose_block_length(&l);
	variance = estimate_long_run_variance(&l, ret->block);
	ret->variance = variance / (double)n;
	ret->effective = fmin((double)n, (double)n * l.at_zero / variance);
}
