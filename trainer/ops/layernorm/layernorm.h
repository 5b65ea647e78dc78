/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm.h: normalisation of each row, fused with the residual sum in front of it (Ba, Kiros, Hinton 2016): s = x +
 * delta; y = (s - mean(s)) * rstd * gamma + beta, rstd = 1 / sqrt(biased variance + eps). Without beta it is RMS norm
 * (Zhang, Sennrich 2019): y = s * rstd * (gamma + shift), rstd = 1 / sqrt(mean(s^2) + eps), and the mean of stats is 0.
 *   layernorm       in x [R,C], delta [R,C] (optional), gamma [G], beta [G] (absent: RMS norm)
 *                   out y [R,C], stats [R*C/G,2] (mean, rstd; master type), sum [R,C] (= s; absent without delta)
 *   layernorm_grad  in dy [R,C], s [R,C], stats, gamma, skip [R,C] (optional)
 *                   out ds [R,C], dgamma [G], dbeta [G] (master type; both or neither; RMS norm: no dbeta)
 * G divides C: each run of G numbers is normalised on its own (the heads of a query). Below, a row is such a run.
 * Mean and variance are those of s before it is rounded to its type. ds = skip + the gradient through the norm. skip is
 * the gradient that bypasses the norm, so the two need no separate sum. ds is the gradient of x and of delta. */
#ifndef DPT_OPS_LAYERNORM_H
#define DPT_OPS_LAYERNORM_H

#include "trainer/graph/graph.h"

#define LAYERNORM_EPS 1e-5

struct layernorm_attr {
	double eps, shift;
	bool rms;
};

struct layernorm_tensors {
	struct tensor *gamma, *beta; /* beta NULL: RMS norm */
	double eps, shift;
};

/* Rows of length gamma's in x. */
static inline int64_t layernorm_rows(const struct tensor *x, const struct tensor *gamma)
{
	return x->shape.dim[0] * (x->shape.dim[1] / gamma->shape.dim[0]);
}

/* Adds a layer norm and returns y. delta NULL: normalises x itself; else *ret_sum is x + delta, to which the next block
 * adds. ret_sum may be NULL. */
struct tensor *layernorm_add(struct graph *g, struct tensor *x, struct tensor *delta, const struct layernorm_tensors *t,
			     struct tensor **ret_sum);

/* Returns true if n is a layernorm whose sum can be moved to another node: its type loses nothing by rounding. */
bool layernorm_may_part(const struct node *n);

/* Makes n normalise s, the output of another node, instead of its own sum. */
void layernorm_part(struct graph *g, struct node *n, struct tensor *s);

#endif
