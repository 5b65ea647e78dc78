/* layernorm.h: normalisation of each row, joined with the residual sum in front of it (Ba, Kiros, Hinton 2016):
 * s = x + delta; y = (s - mean(s)) * rstd * gamma + beta, rstd = 1 / sqrt(biased variance + eps).
 *   layernorm       in x [R,C], delta [R,C] (optional), gamma [C], beta [C]
 *                   out y [R,C], stats [R,2] (mean, rstd; master type), sum [R,C] (= s; absent without delta)
 *   layernorm_grad  in dy [R,C], s [R,C], stats, gamma, skip [R,C] (optional)
 *                   out ds [R,C], dgamma [C], dbeta [C] (master type; both or neither)
 * Mean and variance are those of s before it is rounded to its type. ds = skip + the gradient through the norm: skip is
 * what flows past it, so that the two meet without a pass of their own. ds is the gradient of x and of delta. */
#ifndef DPT_OPS_LAYERNORM_H
#define DPT_OPS_LAYERNORM_H

#include "trainer/graph/graph.h"

#define LAYERNORM_EPS 1e-5

struct layernorm_tensors {
	struct tensor *gamma, *beta;
};

/* Returns y. delta NULL: x itself is normalised; else *ret_sum is x + delta, which is what the next block adds to. */
struct tensor *layernorm_add(struct graph *g, struct tensor *x, struct tensor *delta, const struct layernorm_tensors *t,
			     struct tensor **ret_sum);

/* Whether n is a layernorm whose sum may as well be made in front of it: of a type in which it is not rounded again. */
bool layernorm_may_part(const struct node *n);

/* n normalises s, which another node makes, in place of its own sum. */
void layernorm_part(struct graph *g, struct node *n, struct tensor *s);

#endif
