/* batch_size.c: see batch_size.h. */
#include "tracker/insight/batch_size.h"

#include <math.h>

#define WORTH 1.03 /* a rate that is higher by less is no gain */

static double best_of(const struct batch_search *s, int n)
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
	return s->n == BATCH_SIZES_MAX || (s->n >= 3 && best_of(s, s->n) <= WORTH * best_of(s, s->n - 2));
}

int batch_fastest(const struct batch_search *s)
{
	const double best = best_of(s, s->n);

	for (int i = 0; i < s->n; i++)
		if (WORTH * s->rate[i] >= best)
			return i;
	return -1;
}

static void say_noise(struct buf *out, const struct batch_search *s, int64_t size)
{
	const double samples = (double)size * s->ranks;

	if (isnan(s->noise)) {
		buf_addf(out,
			 "; how many samples a step pay was not found: the gradient's noise hides its direction, or "
			 "the run was too short (--max-steps)");
		return;
	}
	buf_addf(out, "; critical are %.3g samples a step", s->noise);
	if (samples > 2 * s->noise)
		buf_addf(out,
			 ", so most of its %.0f teach little: --batch-size %.0f needs fewer samples for the same "
			 "loss", samples, fmax(1, floor(s->noise / s->ranks)));
	else if (2 * samples < s->noise)
		buf_addf(out, ", so steps of more than its %.0f (more ranks, --grad-accum-steps) would still pay",
			 samples);
	else
		buf_addf(out, ", about its %.0f", samples);
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
		buf_addf(out, ", which no larger one exceeds by 3 %%; up to %lld fit", (long long)s->largest);
	else
		buf_addf(out, ", the largest that fits");
	say_noise(out, s, s->size[at]);
}
