/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.h: y = x * mask / (1 - p); an element is kept with probability 1 - p (Srivastava et al. 2014).
 *   dropout  in x [R,C]  out y
 * The gradient is the same op on dy. No mask is stored: whether element e of sample n is kept is a pure function of the
 * seed, the optimiser step, the node (attr.stream, which clones share) and the index n * per_sample + e, where n is the
 * sample's index in the global batch. It does not depend on ranks, micro-batches or recomputation. */
#ifndef DPT_OPS_DROPOUT_H
#define DPT_OPS_DROPOUT_H

#include "trainer/graph/kernel.h"
#include "trainer/graph/rng.h"

struct dropout_attr {
	double p;	    /* probability of dropping, in [0, 1) */
	uint64_t stream;    /* identifies the node: rng_stream(name) */
	int64_t per_sample; /* elements of one sample */
};

/* Adds dropout of x, whose rows belong to the samples of the micro-batch in equal parts. per_sample: elements of x per
 * sample. Returns x itself if p = 0 or in evaluation. */
struct tensor *dropout_add(struct graph *g, struct tensor *x, double p, int64_t per_sample, const char *name);

/* The random draws of one node in one step. */
struct dropout_draw {
	struct rng_key key;
	uint64_t first;	    /* index of the first element of this micro-batch */
	uint32_t threshold; /* drop if the random word is below it */
	double scale;
};

HOST_DEVICE_INLINE struct dropout_draw dropout_draw(const struct dropout_attr *a, const struct step_page *page)
{
	return (struct dropout_draw){
		.key = { page->seed, a->stream ^ (uint64_t)page->step * UINT64_C(0x9E3779B97F4A7C15) },
		.first = (uint64_t)page->first_sample * (uint64_t)a->per_sample,
		.threshold = (uint32_t)(a->p * 0x1p32),
		.scale = 1 / (1 - a->p),
	};
}

/* Word (number & 3) of block (number / 4) decides; number = d->first + index, index being that in the micro-batch. */
HOST_DEVICE_INLINE bool dropout_keeps(const struct dropout_draw *d, uint64_t index)
{
	uint64_t number = d->first + index;
	uint32_t word[4];

	rng_block(d->key, number / 4, word);
	return word[number & 3] >= d->threshold;
}

#endif
