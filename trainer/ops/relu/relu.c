/* SPDX-License-Identifier: Apache-2.0 */
/* relu.c: ReLU and its gradient, whose backward pass needs only the output. */
#include "trainer/ops/relu/relu.h"

#include "trainer/ops/ops.h"

struct tensor *relu_add(struct graph *g, struct tensor *x)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(
		g, &(struct node_spec){
			   .op = &op_relu, .name = graph_printf(g, "%s.relu", x->name), NODE_IN(x), NODE_OUT(NULL) });
	return n ? n->out[0] : NULL;
}

static int relu_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int relu_grad_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &n->in[1]->shape), "dy and y have different shapes"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[1]->dtype, n->in[1]->shape), "");
}

static int relu_backward(struct graph *g, struct node *n)
{
	struct tensor *y = n->out[0], *dy = graph_grad_get(g, y);
	struct node *back;

	if (!dy || !n->in[0]->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_relu_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, y),
						  NODE_OUT(NULL) });
	graph_grad_add(g, n->in[0], back ? back->out[0] : NULL);
	return g->err.code;
}

const struct op op_relu = {
	.name = "relu",
	.id = OP_relu,
	.recompute = RECOMPUTE_CHEAP,
	.shape = relu_shape,
	.grad = relu_backward,
	.inplace = op_inplace_same,
};

const struct op op_relu_grad = {
	.name = "relu_grad",
	.id = OP_relu_grad,
	.shape = relu_grad_shape,
	.inplace = op_inplace_same,
};

/* ---- ref ----
 * ReLU, elementwise; NaN stays NaN. */

static void run_relu_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[0];
	double *y = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = x[i] <= 0 ? 0 : x[i];
}

static void run_relu_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *dy = args->in[0], *y = args->in[1];
	double *dx = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		dx[i] = y[i] > 0 ? dy[i] : 0;
}

const struct kernel relu_ref = REF_KERNEL(run_relu_ref);
const struct kernel relu_grad_ref = REF_KERNEL(run_relu_grad_ref);
