/* SPDX-License-Identifier: Apache-2.0 */
/* tuning.c: evaluates a learning-rate range test, whose losses are averaged over a twentieth of the steps, centred, so
 * that the rate is not overestimated; and finds the smallest batch size with nearly the best throughput. */
#include "tracker/insight/tuning.h"

#include <math.h>

#define MEAN_DECAY 0.8	 /* decay of the running mean */
#define EXPLODED_TIMES 4 /* times the lowest mean */
#define FELL_LEAST 0.01	 /* fraction of the first loss */

bool lr_range_add(struct lr_range_test *r, double lr, double loss)
{
	double mean;

	if (r->n == LR_RANGE_STEPS_MAX || r->exploded > 0)
		return true;
	if (!isfinite(loss)) {
		r->exploded = lr;
		return true;
	}
	r->lr[r->n] = lr;
	r->loss[r->n++] = loss;
	r->mean = MEAN_DECAY * r->mean + (1 - MEAN_DECAY) * loss;
	r->weight = MEAN_DECAY * r->weight + (1 - MEAN_DECAY);
	mean = r->mean / r->weight;
	if (r->n == 1 || mean < r->best)
		r->best = mean;
	if (mean > EXPLODED_TIMES * fabs(r->best))
		r->exploded = lr;
	return r->exploded > 0;
}

/* Mean of the losses around step i. */
static double smooth_loss(const struct lr_range_test *r, int i, int half)
{
	const int from = i - half < 0 ? 0 : i - half, to = i + half >= r->n ? r->n - 1 : i + half;
	double sum = 0;

	for (int k = from; k <= to; k++)
		sum += r->loss[k] / (to - from + 1);
	return sum;
}

bool lr_range_answer(const struct lr_range_test *r, struct lr_range_answer *ret)
{
	const int half = r->n / 40 + 1;
	int lowest = 0, steepest = 0;
	double fall = 0;

	if (r->n < LR_RANGE_STEPS_LEAST)
		return false;
	for (int i = 1; i < r->n; i++)
		lowest = smooth_loss(r, i, half) < smooth_loss(r, lowest, half) ? i : lowest;
	for (int i = half; i + half <= lowest; i++) {
		const double change = smooth_loss(r, i + half, half) - smooth_loss(r, i - half, half);

		steepest = change < fall ? i : steepest;
		fall = fmin(change, fall);
	}
	*ret = (struct lr_range_answer){ .lowest = r->lr[lowest],
					 .steepest = r->lr[steepest],
					 .first = smooth_loss(r, 0, half),
					 .least = smooth_loss(r, lowest, half),
					 .exploded = r->exploded,
					 .open = !(r->exploded > 0) && lowest + 2 * half >= r->n };
	return ret->least < ret->first - FELL_LEAST * fabs(ret->first);
}

void lr_range_sentence(struct buf *out, const struct lr_range_test *r)
{
	struct lr_range_answer a;

	if (!lr_range_answer(r, &a)) {
		if (r->n < LR_RANGE_STEPS_LEAST)
			buf_addf(out,
				 "no learning rate can be recommended: the test ended after %d steps, %d are needed",
				 r->n, LR_RANGE_STEPS_LEAST);
		else
			buf_addf(out,
				 "no learning rate from %.3g to %.3g lowered the loss in this test; more steps "
				 "(--max-steps) or a larger batch may show one", r->lr[0], r->lr[r->n - 1]);
		return;
	}
	buf_addf(out, "with a rising rate the loss fell fastest at %.2g, was lowest (%.4g, from %.4g) at %.2g",
		 a.steepest, a.least, a.first, a.lowest);
	if (a.exploded > 0)
		buf_addf(out, " and exploded at %.2g", a.exploded);
	else if (a.open)
		buf_addf(out, "; it was still falling at the highest rate: a higher --lr tests higher rates");
}

double lr_trials_rate(const struct lr_trials *t, int i)
{
	return ldexp(t->first, t->power[i]);
}

int lr_trials_best(const struct lr_trials *t)
{
	int best = 0;

	for (int i = 1; i < t->n; i++)
		if (t->loss[i] < t->loss[best] || (t->loss[i] == t->loss[best] && t->power[i] < t->power[best]))
			best = i;
	return best;
}

bool lr_trials_next(const struct lr_trials *t, int *ret_power)
{
	static const int around[] = { 2, -2, 1, -1 };
	const int best = t->n ? t->power[lr_trials_best(t)] : 0;

	*ret_power = 0;
	if (!t->n)
		return true;
	for (size_t k = 0; k < sizeof(around) / sizeof(around[0]) && t->n < LR_TRIALS_MAX; k++) {
		bool tried = false;

		*ret_power = best + around[k];
		for (int i = 0; i < t->n; i++)
			tried |= t->power[i] == *ret_power;
		if (!tried)
			return true;
	}
	return false;
}

/* Finds the smallest batch size with nearly the best throughput, and compares it with the critical batch size. */

#define GAIN_LEAST 1.03 /* a rate must be higher by this factor to be a gain */

static double find_best_rate(const struct batch_search *s, int n)
{
	double best = 0;

	for (int i = 0; i < n; i++)
		best = fmax(best, s->rate[i]);
	return best;
}

bool batch_add(struct batch_search *s, int64_t size, double rate)
{
	s->size[s->n] = size;
	s->rate[s->n++] = rate;
	return s->n == BATCH_SIZES_MAX ||
	       (s->n >= 3 && find_best_rate(s, s->n) <= GAIN_LEAST * find_best_rate(s, s->n - 2));
}

int batch_fastest(const struct batch_search *s)
{
	const double best = find_best_rate(s, s->n);

	for (int i = 0; i < s->n; i++)
		if (GAIN_LEAST * s->rate[i] >= best)
			return i;
	return -1;
}

/* Compares the step's samples with the critical batch size: more are inefficient, fewer leave room. */
static void describe_noise(struct buf *out, const struct batch_search *s, int64_t size)
{
	const double samples = (double)size * s->ranks;

	if (isnan(s->noise)) {
		buf_addf(out, "; the critical batch size is unknown: the gradient is mostly noise, or "
			      "the run was too short (--max-steps)");
		return;
	}
	buf_addf(out, "; the critical batch size is %.3g samples", s->noise);
	if (samples > 2 * s->noise)
		buf_addf(out,
			 ", so a step of %.0f samples is inefficient: --batch-size %.0f needs fewer samples for the "
			 "same "
			 "loss",
			 samples, fmax(1, floor(s->noise / s->ranks)));
	else if (2 * samples < s->noise)
		buf_addf(out, ", so more than %.0f samples a step (more ranks, --grad-accum-steps) would help",
			 samples);
	else
		buf_addf(out, ", close to the %.0f of a step", samples);
}

void batch_sentence(struct buf *out, const struct batch_search *s)
{
	const int at = batch_fastest(s);

	if (at < 0) {
		buf_addf(out, "no batch size fits into memory");
		return;
	}
	buf_addf(out, "--batch-size %lld: %.4g samples/s", (long long)s->size[at], s->rate[at]);
	if (s->largest > s->size[at])
		buf_addf(out, "; larger sizes are less than 3 %% faster; up to %lld fit into memory",
			 (long long)s->largest);
	else
		buf_addf(out, ", the largest that fits into memory");
	describe_noise(out, s, s->size[at]);
}
