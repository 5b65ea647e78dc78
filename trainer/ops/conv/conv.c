/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: shape rules and gradients of the 2-D convolution. The weight gradient precedes the data gradient, so that x
 * can be freed before dx is allocated and a gradient bucket completes as early as possible. */
#include "trainer/ops/conv/conv.h"

#include <string.h>

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

/* ---- ref ----
 * Direct convolution. For one output pixel and one kernel row r, the inputs under the kernel and the weights of one
 * output channel are both contiguous over (s, c). Every loop processes such rows. */

struct conv_ref_sizes {
	int64_t n, h, w, c, k, p, q;
	int64_t kernel, stride, pad;
};

/* One kernel row: offset in an image of x, offset in an output channel of w, and length; 0 outside the image. */
struct kernel_row {
	int64_t x, w, length;
};

static struct conv_ref_sizes read_conv_sizes(const struct node *n, const struct tensor *y)
{
	const struct conv_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return (struct conv_ref_sizes){ .n = in[0],
					.h = in[1],
					.w = in[2],
					.c = in[3],
					.k = out[3],
					.p = out[1],
					.q = out[2],
					.kernel = a->kernel,
					.stride = a->stride,
					.pad = a->pad };
}

static struct kernel_row find_kernel_row(const struct conv_ref_sizes *z, int64_t p, int64_t q, int64_t r)
{
	int64_t h = p * z->stride - z->pad + r, w = q * z->stride - z->pad;
	int64_t first = w < 0 ? -w : 0, end = w + z->kernel > z->w ? z->w - w : z->kernel;

	if (h < 0 || h >= z->h || end <= first)
		return (struct kernel_row){ 0 };
	return (struct kernel_row){ .x = (h * z->w + w + first) * z->c,
				    .w = (r * z->kernel + first) * z->c,
				    .length = (end - first) * z->c };
}

static void run_conv_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->out[0]);
	const double *x = args->in[0], *w = args->in[1];
	double *y = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	memset(y, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		const double *image = x + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				y[i * z.k + k] += ref_dot(image + row.x, w + k * w_each + row.w, row.length);
		}
	}
}

static void run_conv_dgrad_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->in[0]);
	const double *dy = args->in[0], *w = args->in[1];
	double *dx = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	memset(dx, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		double *image = dx + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				ref_axpy(image + row.x, dy[i * z.k + k], w + k * w_each + row.w, row.length);
		}
	}
}

static void run_conv_wgrad_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->in[1]);
	const double *x = args->in[0], *dy = args->in[1];
	double *dw = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	memset(dw, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		const double *image = x + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				ref_axpy(dw + k * w_each + row.w, dy[i * z.k + k], image + row.x, row.length);
		}
	}
}

const struct kernel conv_ref = REF_KERNEL(run_conv_ref);
const struct kernel conv_dgrad_ref = REF_KERNEL(run_conv_dgrad_ref);
const struct kernel conv_wgrad_ref = REF_KERNEL(run_conv_wgrad_ref);
