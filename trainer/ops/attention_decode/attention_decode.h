/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode.h: causal attention of new positions to all earlier ones with a KV cache, for generating text
 * (attention.h has the formula).
 *   attend  in qkv [R,3*H*D], keys [P,K*D], values [P,K*D], first i32 [1]   out y [R,H*D], keys, values (in place)
 * The R rows are positions first, first + 1, …; their keys and values are first written to those rows of the cache. H/K
 * heads in a row share a key and value head, which the cache holds once and qkv H/K times (trainer/ops/rope). With a
 * window a position sees the last `window` ones alone, itself included. The caller ensures first + R <= P. Evaluation
 * only: no gradient. */
#ifndef DPT_OPS_ATTENTION_DECODE_H
#define DPT_OPS_ATTENTION_DECODE_H

#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"

struct attention_decode_attr {
	int64_t heads, shared;	   /* H, K; K divides H */
	int64_t window, positions; /* window: 0: none; positions: P */
	double cap;		   /* of scores (attention.h); 0: none */
};

/* Sizes of a node: c = heads * d channels of y, kept = shared * d channels of a row of the cache. */
struct attention_decode_sizes {
	int64_t rows, heads, d, c, kept, group;
};

static inline struct attention_decode_sizes attention_decode_sizes(const struct node *n)
{
	const struct attention_decode_attr *a = (const struct attention_decode_attr *)n->attr;
	struct attention_decode_sizes z = { .rows = n->in[0]->shape.dim[0],
					    .heads = a->heads,
					    .c = n->in[0]->shape.dim[1] / 3,
					    .group = a->heads / a->shared };

	z.d = z.c / z.heads;
	z.kept = a->shared * z.d;
	return z;
}

/* The first position that `position` sees. */
HOST_DEVICE_INLINE int64_t attention_decode_begin(const struct attention_decode_attr *a, int64_t position)
{
	return a->window && position >= a->window ? position + 1 - a->window : 0;
}

/* Adds the cache, which lasts for the run, and the node. Returns y. */
struct tensor *attention_decode_add(struct graph *g, struct tensor *qkv, struct tensor *first,
				    const struct attention_decode_attr *attr, const char *name);

#endif
