/* SPDX-License-Identifier: Apache-2.0 */
/* gelu.c: GELU and its gradient, whose backward pass needs the input. */
#include "trainer/ops/gelu/gelu.h"

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
