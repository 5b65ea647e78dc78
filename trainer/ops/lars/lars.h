/* SPDX-License-Identifier: Apache-2.0 */
/* lars.h: layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017, algorithm 1): ratio = trust ||p|| / (||g|| +
 * decay ||p||); m = momentum m + lr ratio (g + decay p); p = p - m. The ratio is 1 if a norm is 0 or absent (gains and
 * biases of norms). in p, g, m?, step, psum?, gsum? out p, m? (the same tensors, updated; no m if momentum is 0). psum,
 * gsum: f64 [1], sums of squares of p and g from sumsq (of the whole parameter: sharding strategies add them up). lr
 * comes from the step page. step is guard's output: g is multiplied by its factor, and a skipped step changes
 * nothing. */
#ifndef DPT_OPS_LARS_H
#define DPT_OPS_LARS_H

#include <math.h>

#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"

struct lars_attr {
	double momentum, weight_decay;
	double trust;
};

/* Adds the update of p with the moment "<p>.momentum"; adapts: uses the norms. */
struct node *lars_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts,
		      const struct lars_attr *attr);

/* The trust ratio, the same on every backend. psum, gsum: NULL gives ratio 1. factor: scales the gradient. */
HOST_DEVICE_INLINE double lars_ratio(const struct lars_attr *a, const double *psum, const double *gsum, double factor)
{
	double p = psum ? sqrt(*psum) : 0, g = gsum ? sqrt(*gsum) * factor : 0;

	return p > 0 && g > 0 ? a->trust * p / (g + a->weight_decay * p) : 1;
}

#endif
