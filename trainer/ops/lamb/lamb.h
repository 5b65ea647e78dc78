/* lamb.h: LAMB (You et al. 2019, algorithm 2, phi(x) = x): Adam's step, scaled for each parameter by the ratio of its
 * norm to the step's.
 *   lamb_update  in g, p, m, v, step out u, m, v: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; u = m / (1 - b1^t) /
 *                (sqrt(v / (1 - b2^t)) + eps) + decay p. m and v are updated in place; u may take g's memory.
 *   lamb         in p, u, step, psum?, usum? out p: p = p - lr ratio u with ratio = ||p|| / ||u||; 1 when a norm is 0,
 *                and where the norms are absent (norm gains and biases).
 * psum, usum: f64 [1], sums of squares as sumsq makes them (of the whole parameter: what shares a parameter out adds
 * them up). lr from the step page; step is guard's: g is multiplied by its factor, t is its count of updates, and a
 * skipped step leaves p, m and v, and makes u 0. */
#ifndef DPT_OPS_LAMB_H
#define DPT_OPS_LAMB_H

#include "trainer/graph/graph.h"

struct lamb_attr { /* of lamb_update */
	double beta1, beta2, eps;
	double weight_decay;
};

/* Adds the step of p with the moments "<p>.exp_avg" and "<p>.exp_avg_sq"; adapts: with its norms. */
struct node *lamb_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts,
		      const struct lamb_attr *attr);

#endif
