/* t_distribution.c: Student's t distribution, by the continued fraction of the incomplete beta function. */
#include "tracker/insight/t_distribution.h"

#include <math.h>

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

double t_distribution_inside(double t, double df)
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
