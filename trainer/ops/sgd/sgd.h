/* sgd.h: stochastic gradient descent with momentum as PyTorch's: d = g + decay*p; m = momentum*m + d (the first m is d,
 * which m = 0 gives); p = p - lr * (nesterov ? d + momentum*m : m). in p, g, m? out p, m? (the same tensors, updated;
 * m absent when momentum is 0). lr from the step page; g is divided by page.loss_scale and multiplied by
 * page.clip_factor; found_inf leaves everything. */
#ifndef DPT_OPS_SGD_H
#define DPT_OPS_SGD_H

#include "trainer/graph/graph.h"

struct sgd_attr {
	double momentum;
	double weight_decay; /* 0 where param->decay is false */
	bool nesterov;
};

/* Adds one sgd node per parameter that has a gradient, with moments "<param>.momentum". */
int sgd_add_all(struct graph *g, const struct sgd_attr *attr);

#endif
