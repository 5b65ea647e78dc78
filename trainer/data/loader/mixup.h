/* SPDX-License-Identifier: Apache-2.0 */
/* mixup.h: MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019) of a global batch, as torchvision's transforms.v2 and
 * its reference scripts do: each sample is mixed with the one before it in the batch, the first one with the last. One
 * draw serves a whole step, so that it does not matter how the batch is divided. With both kinds, each step draws
 * one. */
#ifndef DPT_DATA_MIXUP_H
#define DPT_DATA_MIXUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/graph/graph.h"
#include "trainer/graph/rng.h"

struct mixup_opts {
	double mixup_alpha, cutmix_alpha; /* of the Beta distribution of weights; 0: not used */
};

/* Images [height][width][channels] of f32 or f64. */
struct mixup_size {
	int height, width, channels;
	enum dtype dtype;
};

struct mixup_draw {
	double weight; /* weight of the sample's own label, and with MixUp of its pixels */
	bool cuts;     /* CutMix: the box comes from the sample before */
	int x, y, width, height;
};

static inline bool mixup_is_on(const struct mixup_opts *o)
{
	return o->mixup_alpha > 0 || o->cutmix_alpha > 0;
}

/* The draw of a step; both count from 0. */
struct mixup_draw mixup_draw(const struct mixup_opts *o, uint64_t seed, int64_t epoch, int64_t step,
			     const struct mixup_size *size);

/* CutMix's box of area (1 - weight) about pixel (x, y), cut at the edges; the weight becomes what is left. */
struct mixup_draw mixup_box(double weight, int x, int y, const struct mixup_size *size);

/* Mixes the sample before into `own`. */
void mixup_images(const struct mixup_draw *d, const struct mixup_size *size, void *own, const void *before);

/* A draw of Beta(alpha, alpha), alpha > 0. */
double mixup_beta(struct rng_key key, double alpha);

#endif
