/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.h: AdamW (Loshchilov and Hutter 2019) as in PyTorch: p = p (1 - lr decay); m = b1 m + (1 - b1) g; v = b2 v + (1
 * - b2) g^2; p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps). With `coupled` it is Adam: g = g + decay p
 * replaces the first term. in p, g, m, v, step out p, m, v (the same tensors, updated). lr comes from the step page.
 * step is guard's output: g is multiplied by its factor, t is its count of updates, and a skipped step changes
 * nothing. */
#ifndef DPT_OPS_ADAMW_H
#define DPT_OPS_ADAMW_H

#include "trainer/graph/graph.h"

struct adamw_attr {
	double beta1, beta2, eps;
	double weight_decay;
	bool coupled;
};

/* Adds the update of p with the moments "<p>.exp_avg" and "<p>.exp_avg_sq". step: output of guard. */
struct node *adamw_add(struct graph *g, struct tensor *p, struct tensor *step, const struct adamw_attr *attr);

#endif
