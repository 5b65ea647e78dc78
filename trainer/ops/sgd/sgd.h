/* SPDX-License-Identifier: Apache-2.0 */
/* sgd.h: stochastic gradient descent with momentum as in PyTorch: d = g + decay*p; m = momentum*m + d (the first m is
 * d, since m starts at 0); p = p - lr * (nesterov ? d + momentum*m : m). in p, g, m?, step out p, m? (the same tensors,
 * updated; no m if momentum is 0). lr comes from the step page. step is guard's output: g is multiplied by its factor,
 * and a skipped step changes nothing. */
#ifndef DPT_OPS_SGD_H
#define DPT_OPS_SGD_H

#include "trainer/graph/graph.h"

struct sgd_attr {
	double momentum;
	double weight_decay;
	bool nesterov;
};

/* Adds the update of p with the moment "<p>.momentum". */
struct node *sgd_add(struct graph *g, struct tensor *p, struct tensor *step, const struct sgd_attr *attr);

#endif
