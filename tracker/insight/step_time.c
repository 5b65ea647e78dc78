/* SPDX-License-Identifier: Apache-2.0 */
/* step_time.c: computes seconds per sample from the steps of one run, after its warm-up: MSER-5 on medians of
 * batches. */
#include "tracker/insight/step_time.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/insight/spread.h"

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

const char *step_time_phase_name(enum step_time_phase p)
{
	static const char *const names[] = {
#define PHASE(name, help) #name,
#include "schema/insight/phases.def"
#undef PHASE
	};

	return names[p];
}

/* Returns the first counted step. values: space for 2 n. */
static size_t find_first_counted(const struct step_time_step *steps, size_t n, int64_t settled, double *values)
{
	double *scratch = values + n;
	size_t first = n > 1 ? 1 : 0;

	while (first < n / 2 && steps[first].step <= settled)
		first++;
	for (size_t i = first; i < n; i++)
		values[i] = steps[i].seconds / steps[i].samples;
	return first + warmup_length(values + first, n - first, scratch);
}

static void sum_steps(const struct step_time_step *steps, size_t n, struct step_time *p)
{
	double seconds = 0;

	for (size_t i = 0; i < n; i++) {
		p->samples += steps[i].samples;
		seconds += steps[i].seconds;
		for (int k = 0; k < STEP_TIME_PHASES; k++)
			p->phase[k] += steps[i].phase[k];
	}
	p->seconds = seconds / p->samples;
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		p->phase[k] /= p->samples;
}

/* Linearises the ratio: the deviation of each step from its samples' share, relative to the mean step. */
static void estimate_step_spread(const struct step_time_step *steps, struct step_time *p, double *values)
{
	double mean = p->seconds * p->samples / (double)p->steps;
	struct spread s;

	for (size_t i = 0; i < p->steps; i++)
		values[i] = (steps[i].seconds - p->seconds * steps[i].samples) / mean;
	spread_of(values, p->steps, &s);
	p->variance = s.variance;
	p->effective = s.effective;
	p->block = s.block;
}

int step_time_of(const struct step_time_step *steps, size_t n, int64_t settled, struct step_time *ret, struct err *err)
{
	double *values = calloc(2 * n + 1, sizeof(*values));
	struct step_time p = { .seconds = NAN, .variance = NAN, .by_clock = n && steps[0].by_clock };

	if (!values)
		return err_set(err, ERR_NOMEM, "out of memory: %zu steps", n);
	p.warmup = find_first_counted(steps, n, settled, values);
	p.steps = n - p.warmup;
	if (p.steps) {
		sum_steps(steps + p.warmup, p.steps, &p);
		estimate_step_spread(steps + p.warmup, &p, values);
	}
	free(values);
	*ret = p;
	return 0;
}
