/* SPDX-License-Identifier: Apache-2.0 */
/* statistics_test.c: Student's t compared with scipy; the variance of a mean with a real bootstrap and with theory; the
 * warm-up rule and a run's pace on handmade steps; intervals computed by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tracker/insight/run_change.h"
#include "tracker/insight/spread.h"
#include "tracker/insight/step_time.h"

static void equals_scipy(void **state)
{
	static const double rows[][3] = {
#define T_ROW(confidence, df, t) { confidence, df, t },
#include "tests/insight/student_table.def"
#undef T_ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double t = t_distribution_quantile(rows[i][0], rows[i][1]);

		if (!(fabs(t / rows[i][2] - 1) < 1e-9))
			fail_msg("%g, df %g: %.17g, scipy has %.17g", rows[i][0], rows[i][1], t, rows[i][2]);
	}
}

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* Autoregressive: x[i] = phi x[i-1] + a normal draw. */
static void draw(double *x, size_t n, double phi, uint64_t *state)
{
	double at = 0;

	for (size_t i = 0; i < n; i++) {
		double sum = 0;

		for (int k = 0; k < 12; k++)
			sum += uniform(state);
		at = phi * at + sum - 6;
		x[i] = at;
	}
}

/* Politis & Romano's stationary bootstrap, literally: blocks of random length from random positions, in a circle. */
static double drawn_variance(const double *x, size_t n, double block, uint64_t *state)
{
	enum { DRAWS = 4000 };
	double sum = 0, squares = 0;

	for (int d = 0; d < DRAWS; d++) {
		size_t at = 0;
		double mean = 0;

		for (size_t i = 0; i < n; i++) {
			at = i == 0 || uniform(state) < 1 / block ? (size_t)(uniform(state) * (double)n) : (at + 1) % n;
			mean += x[at] / (double)n;
		}
		sum += mean;
		squares += mean * mean;
	}
	return squares / DRAWS - sum * sum / DRAWS / DRAWS;
}

static void equals_bootstrap(void **state)
{
	static double x[400];
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct spread s;
		double drawn;

		draw(x, 400, 0.3 * i, &seed);
		spread_of(x, 400, &s);
		drawn = drawn_variance(x, 400, s.block, &seed);
		if (!(fabs(s.variance / drawn - 1) < 0.1)) /* 4,000 draws: 2 % */
			fail_msg("phi %g: %g, drawn %g, blocks of %g", 0.3 * i, s.variance, drawn, s.block);
	}
}

/* For a long series: the optimal block length for its autocorrelation, and the number of effective values. */
static void equals_theory(void **state)
{
	enum { N = 200000 };
	static const double phis[] = { 0.3, 0.6, 0.8 };
	double *x = malloc(N * sizeof(*x));
	uint64_t seed = 11;

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < sizeof(phis) / sizeof(phis[0]); i++) {
		double phi = phis[i], block = pow(2 * phi / (1 - phi * phi), 2.0 / 3) * cbrt(N);
		struct spread s;

		draw(x, N, phi, &seed);
		spread_of(x, N, &s);
		if (!(fabs(s.block / block - 1) < 0.15) ||
		    !(fabs(s.effective / (N * (1 - phi) / (1 + phi)) - 1) < 0.15))
			fail_msg("phi %g: blocks of %g, want %g; effective %g", phi, s.block, block, s.effective);
	}
	free(x);
}

static void finds_warmup(void **state)
{
	double x[200], scratch[40];
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 200; i++)
		x[i] = i < 45 ? 1.5 : 1;
	assert_int_equal(warmup_length(x, 200, scratch), 45);
	for (int i = 0; i < 200; i++)
		x[i] = 1 + 0.01 * uniform(&seed) + (i < 43 ? 0.5 : 0);
	assert_in_range(warmup_length(x, 200, scratch), 45, 100);
	x[120] = 50; /* slow steps are not warm-up */
	x[70] = 90;
	assert_in_range(warmup_length(x, 200, scratch), 45, 100);
	for (int i = 0; i < 200; i++)
		x[i] = i % 40 ? 1 : 20;
	assert_int_equal(warmup_length(x, 200, scratch), 0);
	assert_int_equal(warmup_length(x, 39, scratch), 0);
	for (int i = 0; i < 200; i++)
		x[i] = 3;
	assert_int_equal(warmup_length(x, 200, scratch), 0);
}

/* 100 steps of 2 samples; the loader settles after the 10th, and an evaluation follows every 10th step. */
static void paces(void **state)
{
	struct step_time_step steps[100] = { { 0 } };
	struct step_time p;
	double sum = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		steps[i] = (struct step_time_step){ .step = i + 1, .samples = 2 };
		steps[i].phase[STEP_TIME_backward] = 3;
		steps[i].phase[STEP_TIME_data_wait] = i < 10 ? 7 : 1;
		steps[i].phase[STEP_TIME_between] = i % 10 == 0 ? 5 : 0;
		for (int k = 0; k < STEP_TIME_PHASES; k++)
			steps[i].seconds += steps[i].phase[k];
	}
	assert_int_equal(step_time_of(steps, 100, 10, &p, NULL), 0);
	assert_int_equal(p.warmup, 10);
	assert_int_equal(p.steps, 90);
	assert_true(fabs(p.seconds - 2.25) < 1e-12); /* (90 * 4 + 9 * 5) / 180 */
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		sum += p.phase[k];
	assert_true(fabs(sum - p.seconds) < 1e-12);
	assert_true(fabs(p.phase[STEP_TIME_between] - 0.25) < 1e-12);
	assert_int_equal(step_time_of(steps, 0, 10, &p, NULL), 0);
	assert_true(p.steps == 0 && isnan(p.seconds));
}

static struct step_time made(double seconds, double wait)
{
	struct step_time p = { .steps = 100, .samples = 100, .seconds = seconds, .effective = 90, .block = 2 };

	p.variance = 1e-6;
	p.phase[STEP_TIME_data_wait] = wait;
	p.phase[STEP_TIME_backward] = seconds - wait;
	return p;
}

/* scipy.stats.ttest_ind(numpy.log([2, 2.1, 1.9]), numpy.log([1.5, 1.6]), equal_var=False).confidence_interval() */
static void equals_welch(void **state)
{
	struct step_time a[] = { made(2, 1), made(2.1, 1.1), made(1.9, 0.9) }, b[] = { made(1.5, 0.5), made(1.6, 0.6) };
	struct run_change_pool pool = { .df = 0 };
	struct run_change c;
	double sum = 0;

	(void)state;
	run_change_compute((struct run_change_side){ a, 3 }, (struct run_change_side){ b, 2 }, &pool, &c);
	assert_int_equal(c.basis, RUN_CHANGE_REPEATS);
	assert_true(fabs(log(c.low) - 0.097773919683979) < 1e-9 && fabs(log(c.high) - 0.4113829506032659) < 1e-9);
	assert_true(fabs(c.phase[STEP_TIME_data_wait].seconds + 0.45) < 1e-12);
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		sum += c.phase[k].seconds;
	assert_true(fabs(sum - c.whole.seconds) < 1e-12);
}

/* One run per side: no interval without other equal runs; with them, the t of their spread. */
static void borrows(void **state)
{
	struct step_time a = made(2, 1), b = made(1.5, 0.5);
	struct step_time others[] = { made(3, 1), made(3.1, 1), made(2.9, 1) };
	struct run_change_pool pool = { .df = 0 };
	struct run_change c;
	double half;

	(void)state;
	run_change_compute((struct run_change_side){ &a, 1 }, (struct run_change_side){ &b, 1 }, &pool, &c);
	assert_int_equal(c.basis, RUN_CHANGE_ALONE);
	assert_true(isnan(c.low) && isnan(c.high) && isnan(c.phase[0].low) && c.steps_low < c.factor);
	run_change_pool_add(&pool, (struct run_change_side){ others, 3 });
	run_change_compute((struct run_change_side){ &a, 1 }, (struct run_change_side){ &b, 1 }, &pool, &c);
	assert_int_equal(c.basis, RUN_CHANGE_POOLED);
	half = 4.302652729749462 * sqrt(2 * pool.log_squares / 2);
	assert_true(fabs(log(c.high / c.factor) - half) < 1e-9 && fabs(log(c.factor / c.low) - half) < 1e-9);
	a.effective = 5;
	run_change_compute((struct run_change_side){ &a, 1 }, (struct run_change_side){ &b, 1 }, &pool, &c);
	assert_int_equal(c.basis, RUN_CHANGE_TOO_FEW);
	assert_true(isnan(c.low));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_scipy),	 cmocka_unit_test(equals_bootstrap),
		cmocka_unit_test(equals_theory), cmocka_unit_test(finds_warmup),
		cmocka_unit_test(paces),	 cmocka_unit_test(equals_welch),
		cmocka_unit_test(borrows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
