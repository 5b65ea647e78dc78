/* SPDX-License-Identifier: Apache-2.0 */
/* add.c: the elementwise sum. Its gradient passes the incoming one to both sides without a copy. */
#include "trainer/ops/add/add.h"

#include "trainer/ops/ops.h"

struct tensor *add_add(struct graph *g, struct tensor *a, struct tensor *b)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_add,
					       .name = graph_printf(g, "%s.add", graph_stem(g, a->name)),
					       NODE_IN(a, b),
					       NODE_OUT(NULL) });
	return n ? n->out[0] : NULL;
}

static int infer_add_shape(struct graph *g, struct node *n)
{
	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &n->in[1]->shape), "the terms have different shapes"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int add_grad(struct graph *g, struct node *n)
{
	struct tensor *dy = graph_grad_get(g, n->out[0]);

	graph_grad_add(g, n->in[0], dy);
	graph_grad_add(g, n->in[1], dy);
	return g->err.code;
}

/* Sums of the gradients of a shared parameter stay in the master type. */
static enum dtype_class add_dtype(const struct node *n, bool is_out, int index)
{
	(void)is_out;
	(void)index;
	return n->out[0]->kind == TENSOR_GRAD ? DTYPE_CLASS_MASTER : DTYPE_CLASS_LOW;
}

const struct op op_add = {
	.name = "add",
	.id = OP_add,
	.recompute = RECOMPUTE_CHEAP,
	.shape = infer_add_shape,
	.grad = add_grad,
	.dtype = add_dtype,
	.inplace = op_inplace_same,
};

/* ---- ref ----
 * The elementwise sum. */

static void run_add_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *a = args->in[0], *b = args->in[1];
	double *y = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = a[i] + b[i];
}

const struct kernel add_ref = REF_KERNEL(run_add_ref);
