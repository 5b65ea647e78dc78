/* lars.h: layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017, algorithm 1): ratio = trust ||p|| / (||g|| +
 * decay ||p||); m = momentum m + lr ratio (g + decay p); p = p - m. The ratio is 1 when a norm is 0, and where the
 * norms are absent (norm gains and biases). in p, g, m?, step, psum?, gsum? out p, m? (the same tensors, updated; m
 * absent when momentum is 0). psum, gsum: f64 [1], sums of squares of p and g as sumsq makes them (of the whole
 * parameter: what shares a parameter out adds them up). lr from the step page; step is guard's: g is multiplied by its
 * factor, and a skipped step leaves everything. */
#ifndef DPT_OPS_LARS_H
#define DPT_OPS_LARS_H

#include "trainer/graph/graph.h"

struct lars_attr {
	double momentum, weight_decay;
	double trust;
};

/* Adds the step of p, with the moment "<p>.momentum"; adapts: with its norms. */
struct node *lars_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts,
		      const struct lars_attr *attr);

#endif
