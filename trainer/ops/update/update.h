/* SPDX-License-Identifier: Apache-2.0 */
/* update.h: one optimiser step of one parameter, element by element. A node has a rule; p, its moments and its gradient
 * have one shape. in p, g, moments?…, step, sums?… out p, moments?… (the same tensors, updated). lr comes from the step
 * page. step is guard's output: d is g times its factor, t is its count of updates, and a skipped step changes
 * nothing. sums are f64 [1], sums of squares of a whole parameter (sharding strategies add them up); without them, or
 * with one of 0, a ratio is 1.
 *
 *   sgd        momentum m, as in PyTorch: d = d + decay p; m = momentum m + d (the first m is d, since m starts at 0);
 *              p = p - lr (nesterov ? d + momentum m : m). No m if momentum is 0: p = p - lr d.
 *   adamw      moments m, v (Loshchilov and Hutter 2019, as in PyTorch): p = p (1 - lr decay); m = b1 m + (1 - b1) d;
 *              v = b2 v + (1 - b2) d^2; p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
 *   adam       the same, but d = d + decay p replaces the first term
 *   lars       momentum m; sums of p and g (You, Gitman and Ginsburg 2017, algorithm 1): ratio = trust ||p|| / (||d|| +
 *              decay ||p||); m = momentum m + lr ratio (d + decay p); p = p - m. No m if momentum is 0.
 *   lamb_step  moments m, v (You et al. 2019, algorithm 2, phi(x) = x): out u, a new tensor, in place of p: m and v as
 *              adamw; u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p; a skipped step sets u to 0
 *   lamb       in u in place of g; sums of p and u: ratio = ||p|| / ||u||; p = p - lr ratio u */
#ifndef DPT_OPS_UPDATE_H
#define DPT_OPS_UPDATE_H

#include <math.h>

#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"
#include "trainer/optimizers/optimizers.h"

#define UPDATE_MOMENTS_MAX 2

/* All rules, those of optimizers.def first: RULE(name, moments, sums, names of the moments…). Every backend has a
 * formula of each. */
#define UPDATE_RULE_LIST(RULE)                                                                                         \
	RULE(sgd, 1, 0, "momentum")                                                                                    \
	RULE(adamw, 2, 0, "exp_avg", "exp_avg_sq")                                                                     \
	RULE(adam, 2, 0, "exp_avg", "exp_avg_sq")                                                                      \
	RULE(lars, 1, 2, "momentum")                                                                                   \
	RULE(lamb, 0, 2, NULL)                                                                                         \
	RULE(lamb_step, 2, 0, "exp_avg", "exp_avg_sq")

enum update_rule {
#define RULE(name, ...) UPDATE_##name,
	UPDATE_RULE_LIST(RULE)
#undef RULE
	UPDATE_RULES
};

struct update_attr {
	enum update_rule rule;
	struct optimizer_attr o;
};

/* Adds the update of p with its moments, "<p>.momentum" or "<p>.exp_avg" and "<p>.exp_avg_sq"; lamb needs two nodes.
 * rule: not lamb_step. adapts: lars and lamb use the norms. A failure is stored in the graph. */
void update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_attr *attr, bool adapts);

/* ---- what kernels share ---- */

/* Indices of operands. */
static inline int update_step_index(const struct node *n)
{
	return n->n_out + 1;
}

/* The trust ratio, the same on every backend. sums: of p, and of g or u; NULL: absent. factor: scales the gradient. */
HOST_DEVICE_INLINE double update_ratio(const struct update_attr *a, const double *const sums[2], double factor)
{
	const bool known = sums[0] && sums[1] && *sums[0] > 0 && *sums[1] > 0;
	const double p = known ? sqrt(*sums[0]) : 0, g = known ? sqrt(*sums[1]) * factor : 0;

	if (a->rule == UPDATE_lamb)
		return known ? sqrt(*sums[0] / *sums[1]) : 1;
	return g > 0 ? a->o.trust * p / (g + a->o.weight_decay * p) : 1;
}

#endif
