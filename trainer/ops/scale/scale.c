/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c: the product with a constant. */
#include "trainer/ops/scale/scale.h"

#include "trainer/ops/ops.h"

struct tensor *scale_add(struct graph *g, struct tensor *x, double factor)
{
	const struct scale_attr attr = { factor };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_scale,
					       .name = graph_printf(g, "%s.scale", x->name),
					       NODE_IN(x),
					       NODE_OUT(NULL),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

static int scale_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int scale_backward(struct graph *g, struct node *n)
{
	struct tensor *dy = graph_grad_get(g, n->out[0]);

	if (dy && n->in[0]->wants_grad)
		graph_grad_add(g, n->in[0], scale_add(g, dy, ((const struct scale_attr *)n->attr)->factor));
	return g->err.code;
}

static void scale_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " factor=%g", ((const struct scale_attr *)n->attr)->factor);
}

const struct op op_scale = {
	.name = "scale",
	.id = OP_scale,
	.recompute = RECOMPUTE_CHEAP,
	.shape = scale_shape,
	.grad = scale_backward,
	.inplace = op_inplace_same,
	.dump = scale_dump,
};

/* ---- ref ---- */

static void run_scale_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double factor = ((const struct scale_attr *)n->attr)->factor, *x = args->in[0];
	double *y = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = factor * x[i];
}

const struct kernel scale_ref = REF_KERNEL(run_scale_ref);
