/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool.c: shape rules and gradient of the global average. */
#include "trainer/ops/avgpool/avgpool.h"

#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *avgpool_add(struct graph *g, struct tensor *x)
{
	struct avgpool_attr attr;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	attr.in_shape = x->shape;
	n = graph_node(g, &(struct node_spec){
				  .op = &op_avgpool, .name = "avgpool", NODE_IN(x), NODE_OUT(NULL), NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

static struct shape make_avgpool_shape(const struct shape *x)
{
	return SHAPE(x->dim[0], x->dim[3]);
}

static int avgpool_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];

	if (graph_expect(g, n, x->shape.ndim == 4 && x->shape.dim[1] > 0 && x->shape.dim[2] > 0, "x must be [N,H,W,C]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(x->dtype, make_avgpool_shape(&x->shape)), "");
}

static int avgpool_grad_shape(struct graph *g, struct node *n)
{
	const struct avgpool_attr *a = n->attr;
	struct shape y = make_avgpool_shape(&a->in_shape);

	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &y), "dy does not match the shape of x"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, a->in_shape), "");
}

static int avgpool_backward(struct graph *g, struct node *n)
{
	struct tensor *dy = graph_grad_get(g, n->out[0]);
	struct avgpool_attr attr = *(const struct avgpool_attr *)n->attr;
	struct node *back;

	if (!dy || !n->in[0]->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_avgpool_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, n->in[0], back ? back->out[0] : NULL);
	return g->err.code;
}

const struct op op_avgpool = {
	.name = "avgpool",
	.id = OP_avgpool,
	.recompute = RECOMPUTE_CHEAP,
	.shape = avgpool_shape,
	.grad = avgpool_backward,
};

const struct op op_avgpool_grad = {
	.name = "avgpool_grad",
	.id = OP_avgpool_grad,
	.shape = avgpool_grad_shape,
};

/* ---- ref ----
 * The average over all pixels of each image and channel. */

static void run_avgpool_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const int64_t *in = n->in[0]->shape.dim;
	int64_t pixels = in[1] * in[2];
	const double *x = args->in[0];
	double *y = args->out[0];

	memset(y, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < in[0] * pixels; i++)
		ref_axpy(y + i / pixels * in[3], 1 / (double)pixels, x + i * in[3], in[3]);
}

static void run_avgpool_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const int64_t *in = n->out[0]->shape.dim;
	int64_t pixels = in[1] * in[2];
	const double *dy = args->in[0];
	double *dx = args->out[0];

	memset(dx, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < in[0] * pixels; i++)
		ref_axpy(dx + i * in[3], 1 / (double)pixels, dy + i / pixels * in[3], in[3]);
}

const struct kernel avgpool_ref = REF_KERNEL(run_avgpool_ref);
const struct kernel avgpool_grad_ref = REF_KERNEL(run_avgpool_grad_ref);
