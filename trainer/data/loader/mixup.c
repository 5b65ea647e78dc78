/* SPDX-License-Identifier: Apache-2.0 */
/* mixup.c: see loader.h. */
#include "trainer/data/loader/loader.h"

#include <math.h>
#include <string.h>

#define ATTEMPTS 1000 /* each is accepted with a probability of at least 95 % */

/* A draw of Gamma(shape, 1) by Marsaglia and Tsang (2000). Uses counters from *at on. */
static double draw_gamma(struct rng_key key, double shape, uint64_t *at)
{
	const double boost = shape < 1 ? pow(1 - rng_uniform(key, (*at)++), 1 / shape) : 1;
	const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (int i = 0; i < ATTEMPTS; i++) {
		const double x = rng_normal(key, (*at)++), u = 1 - rng_uniform(key, (*at)++), t = 1 + c * x;
		const double v = t * t * t;

		if (v > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
			return d * v * boost;
	}
	return d * boost;
}

/* Small alphas give two draws that round to 0: each end has the same probability. */
double mixup_beta(struct rng_key key, double alpha)
{
	uint64_t at = 0;
	const double a = draw_gamma(key, alpha, &at), b = draw_gamma(key, alpha, &at);

	if (a + b > 0)
		return a / (a + b);
	return rng_uniform(key, at) < 0.5 ? 0 : 1;
}

static int clamp_edge(int v, int most)
{
	return v < 0 ? 0 : v > most ? most : v;
}

struct mixup_draw mixup_box(double weight, int x, int y, const struct mixup_size *size)
{
	const double half = 0.5 * sqrt(1 - weight);
	const int half_width = (int)(half * size->width), half_height = (int)(half * size->height);
	const int left = clamp_edge(x - half_width, size->width), right = clamp_edge(x + half_width, size->width);
	const int top = clamp_edge(y - half_height, size->height), bottom = clamp_edge(y + half_height, size->height);
	struct mixup_draw d = { .cuts = true, .x = left, .y = top, .width = right - left, .height = bottom - top };

	d.weight = 1 - (double)d.width * d.height / ((double)size->width * size->height);
	return d;
}

struct mixup_draw mixup_draw(const struct mixup_opts *o, uint64_t seed, int64_t epoch, int64_t step,
			     const struct mixup_size *size)
{
	const struct rng_key key = augment_key(seed, (uint64_t)epoch, -1 - step);
	bool cuts = o->cutmix_alpha > 0;
	double weight;

	if (cuts && o->mixup_alpha > 0)
		cuts = rng_uniform(key, UINT64_MAX) < 0.5;
	weight = mixup_beta(key, cuts ? o->cutmix_alpha : o->mixup_alpha);
	if (!cuts)
		return (struct mixup_draw){ .weight = weight };
	return mixup_box(weight, (int)rng_below(key, UINT64_MAX - 1, (uint64_t)size->width),
			 (int)rng_below(key, UINT64_MAX - 2, (uint64_t)size->height), size);
}

static void blend_images(const struct mixup_draw *d, const struct mixup_size *size, void *own, const void *before)
{
	const size_t n = (size_t)size->height * (size_t)size->width * (size_t)size->channels;

	if (size->dtype == DTYPE_F64) {
		double *a = own;
		const double *b = before;

		for (size_t i = 0; i < n; i++)
			a[i] = a[i] * d->weight + b[i] * (1 - d->weight);
	} else {
		const float weight = (float)d->weight, rest = (float)(1 - d->weight), *b = before;
		float *a = own;

		for (size_t i = 0; i < n; i++)
			a[i] = a[i] * weight + b[i] * rest;
	}
}

void mixup_images(const struct mixup_draw *d, const struct mixup_size *size, void *own, const void *before)
{
	const size_t pixel = (size_t)size->channels * dtype_bytes(size->dtype);

	if (!d->cuts) {
		blend_images(d, size, own, before);
		return;
	}
	for (int y = d->y; y < d->y + d->height; y++) {
		const size_t at = ((size_t)y * (size_t)size->width + (size_t)d->x) * pixel;

		memcpy((char *)own + at, (const char *)before + at, (size_t)d->width * pixel);
	}
}
