/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode.h: causal attention of new positions to all earlier ones with a KV cache, for generating text
 * (attention.h has the formula). attend  in qkv [R,3C], keys [P,C], values [P,C], first i32 [1]   out y [R,C], keys,
 * values (updated in place) The R rows are positions first, first + 1, …; their keys and values are first written to
 * those rows of the cache. The caller ensures first + R <= P. Evaluation only: no gradient. */
#ifndef DPT_OPS_ATTENTION_DECODE_H
#define DPT_OPS_ATTENTION_DECODE_H

#include "trainer/graph/graph.h"

struct attention_decode_attr {
	int64_t heads;
};

struct attention_decode_tensors {
	struct tensor *keys, *values, *first;
};

struct tensor *attention_decode_add(struct graph *g, struct tensor *qkv, const struct attention_decode_tensors *t,
				    int64_t heads, const char *name);

#endif
