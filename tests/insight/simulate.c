/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c: runs drawn from a known truth, and how often the intervals of tracker/insight contain it. */
#include "tests/insight/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/insight/run_change.h"
#include "tracker/insight/spread.h"

#define STEP_NOISE 0.05
#define SPIKE 9.0 /* added by a spike, in steps */
#define SPIKE_SHARE 0.01
#define TRUE_FACTOR 1.1

enum { STEPS_MAX = 4000, RUNS_MAX = 8, CALIBRATION = 5 };

/* splitmix64 */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double radius = sqrt(-2 * log(uniform(state)));

	return radius * cos(6.283185307179586 * uniform(state));
}

static void draw_run(const struct simulate *s, double seconds, uint64_t *state, struct step_time *ret)
{
	static struct step_time_step steps[STEPS_MAX];
	double phi = s->autocorrelation, at = normal(state), fresh = sqrt(1 - phi * phi);
	double own = seconds * exp(s->run_noise * normal(state)), warm = s->warmup * s->steps;

	for (int i = 0; i < s->steps; i++) {
		double v = 1 + STEP_NOISE * at + (warm > 0 && i < warm ? exp(-3 * i / warm) : 0);

		if (s->spikes && uniform(state) < SPIKE_SHARE)
			v += SPIKE;
		steps[i] = (struct step_time_step){ .step = i + 1, .samples = 1, .seconds = own * v };
		steps[i].phase[STEP_TIME_backward] = own * v;
		at = phi * at + fresh * normal(state);
	}
	if (step_time_of(steps, (size_t)s->steps, INT64_MIN, ret, NULL))
		abort();
}

static double mean_step(const struct simulate *s)
{
	return 1 + (s->spikes ? SPIKE * SPIKE_SHARE : 0);
}

static double step_variance(const struct simulate *s)
{
	return STEP_NOISE * STEP_NOISE + (s->spikes ? SPIKE * SPIKE * SPIKE_SHARE * (1 - SPIKE_SHARE) : 0);
}

/* Variance of the sum of many steps, per step. */
static double long_variance(const struct simulate *s)
{
	double phi = s->autocorrelation;

	return STEP_NOISE * STEP_NOISE * (1 + phi) / (1 - phi) +
	       (s->spikes ? SPIKE * SPIKE * SPIKE_SHARE * (1 - SPIKE_SHARE) : 0);
}

static double kept_steps(const struct simulate *s)
{
	return s->steps * (1 - s->warmup);
}

/* The true variance of log(factor). */
static double true_variance(const struct simulate *s)
{
	double within = long_variance(s) / kept_steps(s) / (mean_step(s) * mean_step(s));

	return 2 * (s->run_noise * s->run_noise + within) / s->repeats;
}

static double df_of(const struct simulate *s, struct run_change_side a, struct run_change_side b)
{
	double v[2] = { 0 }, mean, parts = 0, df = s->repeats - 1;
	struct run_change_side side[2] = { a, b };

	if (s->repeats == 1)
		return CALIBRATION - 1;
	for (int k = 0; k < 2; k++) {
		mean = 0;
		for (size_t i = 0; i < side[k].n; i++)
			mean += log(side[k].runs[i].seconds) / (double)side[k].n;
		for (size_t i = 0; i < side[k].n; i++)
			v[k] += pow(log(side[k].runs[i].seconds) - mean, 2);
		parts += v[k] * v[k] / df;
	}
	return (v[0] + v[1]) * (v[0] + v[1]) / parts;
}

static bool holds(double low, double high)
{
	return low <= TRUE_FACTOR && TRUE_FACTOR <= high;
}

/* Treats every step as an independent sample of its run. */
static bool naive_holds(const struct simulate *s, struct run_change_side a, struct run_change_side b)
{
	double n = kept_steps(s) * s->repeats, factor, half;

	factor = a.runs[0].seconds / b.runs[0].seconds;
	half = 1.96 * sqrt(2 * step_variance(s) / n) / mean_step(s);
	return holds(factor * exp(-half), factor * exp(half));
}

static void draw_pair(const struct simulate *s, uint64_t *state, struct simulate_tally *t)
{
	struct step_time a[RUNS_MAX], b[RUNS_MAX], other[CALIBRATION];
	struct run_change_side sides[2] = { { a, (size_t)s->repeats }, { b, (size_t)s->repeats } };
	struct run_change_pool pool = { .df = 0 };
	struct run_change c;
	double ideal;

	for (int i = 0; i < s->repeats; i++) {
		draw_run(s, TRUE_FACTOR, state, &a[i]);
		draw_run(s, 1, state, &b[i]);
	}
	for (int i = 0; s->repeats == 1 && i < CALIBRATION; i++)
		draw_run(s, 3, state, &other[i]);
	if (s->repeats == 1)
		run_change_pool_add(&pool, (struct run_change_side){ other, CALIBRATION });
	run_change_compute(sides[0], sides[1], &pool, &c);
	t->pairs++;
	t->wanted += kept_steps(s) * step_variance(s) / long_variance(s) >= 20;
	t->naive_held += naive_holds(s, sides[0], sides[1]);
	t->steps_held += holds(c.steps_low, c.steps_high);
	if (isnan(c.low))
		return;
	t->held += holds(c.low, c.high);
	ideal = t_distribution_quantile(RUN_CHANGE_CONFIDENCE, df_of(s, sides[0], sides[1])) * sqrt(true_variance(s));
	t->widths[t->given++] = log(c.high / c.factor) / ideal;
}

void simulate_run(const struct simulate *s, int pairs, uint64_t seed, struct simulate_tally *t)
{
	uint64_t state = seed;

	for (int i = 0; i < pairs; i++)
		draw_pair(s, &state, t);
}

struct simulate simulate_setting(int i)
{
	static const double phis[] = { 0, 0.6, 0.9 }, warmups[] = { 0.01, 0.1, 0.3 }, noises[] = { 0, 0.03, 0.05 };
	struct simulate s = { .steps = 600 };

	s.repeats = 1 + i % 5;
	i /= 5;
	s.run_noise = noises[i % 3];
	i /= 3;
	s.warmup = warmups[i % 3];
	i /= 3;
	s.spikes = i % 2;
	s.autocorrelation = phis[i / 2];
	return s;
}

const char *simulate_name(const struct simulate *s, char *text, size_t n)
{
	snprintf(text, n, "autocorrelation %.1f, %s spikes, warm-up %2.0f %%, run noise %.0f %%, %d run%s a side",
		 s->autocorrelation, s->spikes ? "with" : "no", 100 * s->warmup, 100 * s->run_noise, s->repeats,
		 s->repeats == 1 ? "" : "s");
	return text;
}
