/* SPDX-License-Identifier: Apache-2.0 */
/* optimizers.h: the optimisers of optimizers.def. Each adds the nodes that turn one parameter's gradient into its new
 * value. All share one set of options and use those they have. */
#ifndef DPT_OPS_OPTIMIZERS_H
#define DPT_OPS_OPTIMIZERS_H

#include "trainer/graph/graph.h"

struct optimizer_attr {
	double momentum, beta1, beta2, eps, trust;
	double weight_decay; /* for this parameter */
	bool nesterov;
	bool adapts; /* the parameter is neither a gain nor a bias: layer-wise rates apply */
};

struct optimizer {
	/* step: output of the guard op. A failure is stored in the graph. */
	void (*add)(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a);
};

enum optimizer_id {
#define OPTIMIZER(name, ...) OPTIMIZER_##name,
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
	OPTIMIZER_COUNT
};

#define OPTIMIZER(name, ...) extern const struct optimizer optimizer_##name;
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER

#endif
