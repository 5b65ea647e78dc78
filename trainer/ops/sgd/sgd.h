/* sgd.h: stochastic gradient descent with momentum as PyTorch's: d = g + decay*p; m = momentum*m + d (the first m is d,
 * which m = 0 gives); p = p - lr * (nesterov ? d + momentum*m : m). in p, g, m?, step out p, m? (the same tensors,
 * updated; m absent when momentum is 0). lr from the step page; step is guard's: g is multiplied by its factor, and a
 * skipped step leaves everything. */
#ifndef DPT_OPS_SGD_H
#define DPT_OPS_SGD_H

#include "trainer/graph/graph.h"

struct sgd_attr {
	double momentum;
	double weight_decay;
	bool nesterov;
};

/* Adds the step of p, with the moment "<p>.momentum". */
struct node *sgd_add(struct graph *g, struct tensor *p, struct tensor *step, const struct sgd_attr *attr);

#endif
