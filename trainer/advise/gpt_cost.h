/* SPDX-License-Identifier: Apache-2.0 */
/* gpt_cost.h: the cost of a GPT by formula, without planning a graph: for maps over many sizes, and for machines that
 * are not here. Memory follows PyTorch's of a published study of data parallelism on A100s (Li et al. 2022): weights,
 * gradients and one more copy in the compute type, plain SGD; samples of 256 tokens. */
#ifndef DPT_ADVISE_GPT_COST_H
#define DPT_ADVISE_GPT_COST_H

#include "trainer/advise/advise.h"

#define GPT_COST_TOKENS 256 /* length of a sample */

struct gpt_size {
	const char *name;
	double parameters; /* includes the embedding and a separate classifier */
	int layers, heads;
	double width;
};

/* Returns the type that a map computes in: f16, bf16 or f32, the first for which the machine has a product. */
const char *gpt_cost_dtype(const struct hardware *h);

/* Returns the model at b samples of a micro-batch. Its parts are the halves of a layer: attention and MLP. recompute:
 * only the inputs of the parts are kept, and the backward pass computes the rest again. */
struct advise_model gpt_cost_model(const struct gpt_size *s, double b, bool recompute, const struct hardware *h);

#endif
