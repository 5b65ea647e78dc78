/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c: estimates the variance of the mean of dependent values; Student's t by the continued fraction of the
 * incomplete beta function. */
#include "tracker/insight/spread.h"

#include <math.h>

/* ---- Student's t ---- */

enum { FRACTION_TERMS = 300, BISECTIONS = 80 };

static double avoid_zero(double v)
{
	return fabs(v) < 1e-300 ? 1e-300 : v;
}

/* The continued fraction of I_x(a, b), Abramowitz & Stegun 26.5.8, evaluated forward (Lentz's method). */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 / avoid_zero(1 - (a + b) * x / (a + 1)), f = d;

	for (int m = 1; m < FRACTION_TERMS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

		d = 1 / avoid_zero(1 + even * d);
		c = avoid_zero(1 + even / c);
		f *= d * c;
		d = 1 / avoid_zero(1 + odd * d);
		c = avoid_zero(1 + odd / c);
		step = d * c;
		f *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return f;
}

/* I_x(a, b). The fraction converges fast below the mean of the distribution; above it the mirror image is used. */
static double incomplete_beta(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

/* P(|T| <= t) of Student's t for t >= 0 and df > 0, not only integers: 1 - I_x(df/2, 1/2) with x = df / (df + t^2)
 * (Abramowitz & Stegun 26.7.1, 26.5). */
static double t_distribution_inside(double t, double df)
{
	return 1 - incomplete_beta(df / (df + t * t), df / 2, 0.5);
}

double t_distribution_quantile(double confidence, double df)
{
	double low = 0, high = 1;

	while (t_distribution_inside(high, df) < confidence && high < 1e150)
		high *= 4;
	for (int i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (t_distribution_inside(middle, df) < confidence)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

/* ---- the stationary bootstrap ---- */

#define SIGNIFICANT 2.0	  /* Politis & White's c: autocorrelations below c * sqrt(log10(n) / n) count as zero */
#define WEIGHT_LEAST 1e-3 /* lags with less weight are skipped */

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
