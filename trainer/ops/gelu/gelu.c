/* SPDX-License-Identifier: Apache-2.0 */
/* gelu.c: GELU and its gradient, whose backward pass needs the input. */
#include "trainer/ops/gelu/gelu.h"

#include <math.h>

#include "trainer/ops/ops.h"

struct tensor *gelu_add(struct graph *g, struct tensor *x)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(
		g, &(struct node_spec){
			   .op = &op_gelu, .name = graph_printf(g, "%s.gelu", x->name), NODE_IN(x), NODE_OUT(NULL) });
	return n ? n->out[0] : NULL;
}

static int gelu_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int gelu_grad_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &n->in[1]->shape), "dy and x have different shapes"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[1]->dtype, n->in[1]->shape), "");
}

static int gelu_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *dy = graph_grad_get(g, n->out[0]);
	struct node *back;

	if (!dy || !x->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_gelu_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, x),
						  NODE_OUT(NULL) });
	graph_grad_add(g, x, back ? back->out[0] : NULL);
	return g->err.code;
}

const struct op op_gelu = {
	.name = "gelu",
	.id = OP_gelu,
	.recompute = RECOMPUTE_CHEAP,
	.shape = gelu_shape,
	.grad = gelu_backward,
	.inplace = op_inplace_same,
};

const struct op op_gelu_grad = {
	.name = "gelu_grad",
	.id = OP_gelu_grad,
	.shape = gelu_grad_shape,
	.inplace = op_inplace_same,
};

/* ---- ref ----
 * Tanh GELU, elementwise. */

#define SQRT_2_OVER_PI 0.79788456080286535588
#define CUBIC 0.044715

static void run_gelu_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *y = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = 0.5 * x[i] * (1 + tanh(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i])));
}

static void run_gelu_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *dy = args->in[0], *x = args->in[1];
	double *dx = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++) {
		double t = tanh(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i]));
		double inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x[i] * x[i]);

		dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * inner);
	}
}

const struct kernel gelu_ref = REF_KERNEL(run_gelu_ref);
const struct kernel gelu_grad_ref = REF_KERNEL(run_gelu_grad_ref);
