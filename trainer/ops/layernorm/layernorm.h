/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm.h: normalisation of each row, fused with the residual sum in front of it (Ba, Kiros, Hinton 2016): s = x +
 * delta; y = (s - mean(s)) * rstd * gamma + beta, rstd = 1 / sqrt(biased variance + eps).
 *   layernorm       in x [R,C], delta [R,C] (optional), gamma [C], beta [C]
 *                   out y [R,C], stats [R,2] (mean, rstd; master type), sum [R,C] (= s; absent without delta)
 *   layernorm_grad  in dy [R,C], s [R,C], stats, gamma, skip [R,C] (optional)
 *                   out ds [R,C], dgamma [C], dbeta [C] (master type; both or neither)
 * Mean and variance are those of s before it is rounded to its type. ds = skip + the gradient through the norm. skip is
 * the gradient that bypasses the norm, so the two need no separate sum. ds is the gradient of x and of delta. */
#ifndef DPT_OPS_LAYERNORM_H
#define DPT_OPS_LAYERNORM_H

#include "trainer/graph/graph.h"

#define LAYERNORM_EPS 1e-5

struct layernorm_tensors {
	struct tensor *gamma, *beta;
};

/* Adds a layer norm and returns y. delta NULL: normalises x itself; else *ret_sum is x + delta, to which the next block
 * adds. */
struct tensor *layernorm_add(struct graph *g, struct tensor *x, struct tensor *delta, const struct layernorm_tensors *t,
			     struct tensor **ret_sum);

/* Returns true if n is a layernorm whose sum can be moved to another node: its type loses nothing by rounding. */
bool layernorm_may_part(const struct node *n);

/* Makes n normalise s, the output of another node, instead of its own sum. */
void layernorm_part(struct graph *g, struct node *n, struct tensor *s);

#endif
