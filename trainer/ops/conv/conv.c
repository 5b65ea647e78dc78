/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: shape rules and gradients of the 2-D convolution. The weight gradient precedes the data gradient, so that x
 * can be freed before dx is allocated and a gradient bucket completes as early as possible. */
#include "trainer/ops/conv/conv.h"

#include "trainer/ops/ops.h"

struct tensor *conv_add(struct graph *g, struct tensor *x, struct tensor *w, int stride, int pad)
{
	struct conv_attr attr = { .stride = stride, .pad = pad };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	attr.kernel = (int)w->shape.dim[1];
	attr.in_shape = x->shape;
	n = graph_node(g, &(struct node_spec){ .op = &op_conv,
					       .name = graph_stem(g, w->name),
					       NODE_IN(x, w),
					       NODE_OUT(NULL),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

/* Output length along one axis; below 1: the image is smaller than the kernel. */
static int64_t count_conv_outputs(int64_t in, const struct conv_attr *a)
{
	int64_t room = in + 2 * (int64_t)a->pad - a->kernel;

	return a->stride < 1 || room < 0 ? 0 : room / a->stride + 1;
}

static struct shape make_conv_shape(const struct conv_attr *a, int64_t channels)
{
	const int64_t *in = a->in_shape.dim;

	return SHAPE(in[0], count_conv_outputs(in[1], a), count_conv_outputs(in[2], a), channels);
}

/* Checks common to the three ops: in_shape is 4-D, w matches it, dy (or y) has the resulting shape. */
static int check_conv_operands(struct graph *g, const struct node *n, const struct tensor *w, const struct tensor *dy)
{
	const struct conv_attr *a = n->attr;
	struct shape y;

	if (graph_expect(g, n, a->in_shape.ndim == 4, "x must be [N,H,W,C]"))
		return g->err.code;
	if (w && graph_expect(g, n,
			      w->shape.ndim == 4 && w->shape.dim[1] == a->kernel && w->shape.dim[2] == a->kernel &&
				      w->shape.dim[3] == a->in_shape.dim[3],
			      "weights [K,R,S,C] do not match x [N,H,W,C]"))
		return g->err.code;
	y = make_conv_shape(a, dy ? dy->shape.dim[3] : 1);
	if (graph_expect(g, n, y.dim[1] > 0 && y.dim[2] > 0, "image is smaller than the kernel"))
		return g->err.code;
	return graph_expect(g, n, !dy || shape_equal(&dy->shape, &y), "dy does not match the output shape of x");
}

static int conv_shape(struct graph *g, struct node *n)
{
	const struct conv_attr *a = n->attr;

	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &a->in_shape), "x does not have the declared shape") ||
	    check_conv_operands(g, n, n->in[1], NULL))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, make_conv_shape(a, n->in[1]->shape.dim[0])), "");
}

static int conv_dgrad_shape(struct graph *g, struct node *n)
{
	const struct conv_attr *a = n->attr;

	if (check_conv_operands(g, n, n->in[1], n->in[0]))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, a->in_shape), "");
}

static int conv_wgrad_shape(struct graph *g, struct node *n)
{
	const struct conv_attr *a = n->attr;

	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &a->in_shape), "x does not have the declared shape") ||
	    check_conv_operands(g, n, NULL, n->in[1]))
		return g->err.code;
	return graph_out(
		g, n, 0,
		TENSOR_TYPE(n->in[0]->dtype, SHAPE(n->in[1]->shape.dim[3], a->kernel, a->kernel, a->in_shape.dim[3])),
		"");
}

/* Adds dw, then dx. */
static int conv_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *w = n->in[1], *dy = graph_grad_get(g, n->out[0]), *dw;
	struct conv_attr attr = *(const struct conv_attr *)n->attr;
	struct node *back;

	if (!dy)
		return 0;
	if (w->wants_grad) {
		dw = graph_param_grad(g, w);
		graph_node(g, &(struct node_spec){ .op = &op_conv_wgrad,
						   .name = graph_printf(g, "%s.dw", n->name),
						   NODE_IN(x, dy),
						   NODE_OUT(dw),
						   NODE_ATTR(attr) });
		graph_grad_add(g, w, dw);
	}
	if (x->wants_grad) {
		back = graph_node(g, &(struct node_spec){ .op = &op_conv_dgrad,
							  .name = graph_printf(g, "%s.dx", n->name),
							  NODE_IN(dy, w),
							  NODE_OUT(NULL),
							  NODE_ATTR(attr) });
		graph_grad_add(g, x, back ? back->out[0] : NULL);
	}
	return g->err.code;
}

static void conv_dump(const struct node *n, struct buf *out)
{
	const struct conv_attr *a = n->attr;

	buf_addf(out, " kernel=%d stride=%d pad=%d", a->kernel, a->stride, a->pad);
}

/* A multiply-add counts as two, padding included; the same for all three ops. */
static double conv_flops(const struct node *n)
{
	const struct conv_attr *a = n->attr;
	const struct tensor *y = n->op == &op_conv ? n->out[0] : n->op == &op_conv_dgrad ? n->in[0] : n->in[1];

	return 2.0 * (double)shape_count(&y->shape) * a->kernel * a->kernel * (double)a->in_shape.dim[3];
}

const struct op op_conv = {
	.name = "conv",
	.id = OP_conv,
	.shape = conv_shape,
	.grad = conv_backward,
	.dump = conv_dump,
	.flops = conv_flops,
};

const struct op op_conv_dgrad = {
	.name = "conv_dgrad",
	.id = OP_conv_dgrad,
	.shape = conv_dgrad_shape,
	.dump = conv_dump,
	.flops = conv_flops,
};

const struct op op_conv_wgrad = {
	.name = "conv_wgrad",
	.id = OP_conv_wgrad,
	.shape = conv_wgrad_shape,
	.dtype = op_dtype_sums,
	.dump = conv_dump,
	.flops = conv_flops,
};
