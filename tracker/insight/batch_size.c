/* batch_size.c: finds the smallest batch size with nearly the best throughput, and compares it with the critical batch
 * size. */
#include "tracker/insight/batch_size.h"

#include <math.h>

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
		buf_addf(out,
			 "; the critical batch size is unknown: the gradient is mostly noise, or "
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
