/* SPDX-License-Identifier: Apache-2.0 */
/* lamb.h: LAMB (You et al. 2019, algorithm 2, phi(x) = x): Adam's step, scaled per parameter by the ratio of the
 * parameter's norm to the step's.
 *   lamb_update  in p, g, m, v, step out u, m, v: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; u = m / (1 - b1^t) /
 *                (sqrt(v / (1 - b2^t)) + eps) + decay p. m and v are updated in place; u may reuse g's memory.
 *   lamb         in p, u, step, psum?, usum? out p: p = p - lr ratio u with ratio = ||p|| / ||u||; 1 if a norm is 0 or
 *                absent (gains and biases of norms).
 * psum, usum: f64 [1], sums of squares from sumsq (of the whole parameter: sharding strategies add them up). lr comes
 * from the step page. step is guard's output: g is multiplied by its factor, t is its count of updates; a skipped step
 * leaves p, m and v unchanged and sets u to 0. */
#ifndef DPT_OPS_LAMB_H
#define DPT_OPS_LAMB_H

#include <math.h>

#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"

struct lamb_attr { /* of lamb_update */
	double beta1, beta2, eps;
	double weight_decay;
};

/* Adds the update of p with the moments "<p>.exp_avg" and "<p>.exp_avg_sq"; adapts: uses the norms. */
struct node *lamb_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts,
		      const struct lamb_attr *attr);

/* The trust ratio, the same on every backend. psum, usum: NULL gives ratio 1. */
HOST_DEVICE_INLINE double lamb_ratio(const double *psum, const double *usum)
{
	return psum && usum && *psum > 0 && *usum > 0 ? sqrt(*psum / *usum) : 1;
}

#endif
