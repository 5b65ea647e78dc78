/* optimizers.h: the optimisers of optimizers.def, and what their ops share. Each adds the nodes that turn one parameter's
 * gradient into its new value. All share one set of options and use those they have. */
#ifndef DPT_OPS_OPTIMIZERS_H
#define DPT_OPS_OPTIMIZERS_H

#include "trainer/graph/op.h"

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

extern const struct optimizer *const optimizers_table[OPTIMIZER_COUNT];

#define UPDATE_MOMENTS_MAX 2

/* The node that updates a parameter: in p, its gradient, moments, step, sums; out p and moments, the same tensors. */
struct update_spec {
	const struct op *op;
	int moments;
	struct tensor *moment[UPDATE_MOMENTS_MAX]; /* by op_moment; NULL: an absent operand */
	int sums;
	struct tensor *sum[2]; /* f64 [1]; NULL: an absent operand */
	const void *attr; /* copied, attr_bytes of it */
	size_t attr_bytes;
};

/* Appends the node; NULL once the graph failed. */
struct node *update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_spec *s);

/* Shape rule and aliasing of these nodes, also for those whose output 0 is a new tensor in the memory of input 0: inputs
 * 0 and 1 and all moments have one shape; output i > 0 is input i + 1. */
int update_shape(struct graph *g, struct node *n);
int update_inplace(const struct node *n, int out);

#endif
