/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool.c: shape rules and gradient of the windowed maximum. */
#include "trainer/ops/maxpool/maxpool.h"

#include <math.h>
#include <string.h>

#include "trainer/ops/ops.h"

struct tensor *maxpool_add(struct graph *g, struct tensor *x, const struct maxpool_attr *attr)
{
	struct maxpool_attr a = *attr;
	struct node *n;

	if (graph_failed(g))
		return NULL;
	a.in_shape = x->shape;
	n = graph_node(g,
		       &(struct node_spec){
			       .op = &op_maxpool, .name = "maxpool", NODE_IN(x), NODE_OUT(NULL, NULL), NODE_ATTR(a) });
	return n ? n->out[0] : NULL;
}

static int64_t count_pool_outputs(int64_t in, const struct maxpool_attr *a)
{
	int64_t room = in + 2 * (int64_t)a->pad - a->kernel;

	return room < 0 ? 0 : room / a->stride + 1;
}

static struct shape make_maxpool_shape(const struct maxpool_attr *a)
{
	const int64_t *in = a->in_shape.dim;

	return SHAPE(in[0], count_pool_outputs(in[1], a), count_pool_outputs(in[2], a), in[3]);
}

static int check_maxpool(struct graph *g, const struct node *n)
{
	const struct maxpool_attr *a = n->attr;

	if (graph_expect(g, n,
			 a->in_shape.ndim == 4 && a->stride >= 1 && a->kernel >= 1 && a->kernel <= 15 && a->pad >= 0 &&
				 a->pad < a->kernel,
			 "kernel must be 1 to 15 and padding smaller than kernel"))
		return g->err.code;
	return graph_expect(
		g, n, count_pool_outputs(a->in_shape.dim[1], a) > 0 && count_pool_outputs(a->in_shape.dim[2], a) > 0,
		"image is smaller than the window");
}

static int maxpool_shape(struct graph *g, struct node *n)
{
	const struct maxpool_attr *a = n->attr;

	if (graph_expect(g, n, shape_equal(&n->in[0]->shape, &a->in_shape), "x does not have the declared shape") ||
	    check_maxpool(g, n) || graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, make_maxpool_shape(a)), ""))
		return g->err.code;
	return graph_out(g, n, 1, TENSOR_TYPE(DTYPE_U8, make_maxpool_shape(a)), ".index");
}

static int maxpool_grad_shape(struct graph *g, struct node *n)
{
	const struct maxpool_attr *a = n->attr;
	struct shape y = make_maxpool_shape(a);

	if (check_maxpool(g, n) ||
	    graph_expect(g, n, shape_equal(&n->in[0]->shape, &y) && shape_equal(&n->in[1]->shape, &y),
			 "dy does not match the output shape of x"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, a->in_shape), "");
}

static int maxpool_backward(struct graph *g, struct node *n)
{
	struct tensor *dy = graph_grad_get(g, n->out[0]);
	struct maxpool_attr attr = *(const struct maxpool_attr *)n->attr;
	struct node *back;

	if (!dy || !n->in[0]->wants_grad)
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_maxpool_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, n->out[1]),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, n->in[0], back ? back->out[0] : NULL);
	return g->err.code;
}

static void maxpool_dump(const struct node *n, struct buf *out)
{
	const struct maxpool_attr *a = n->attr;

	buf_addf(out, " kernel=%d stride=%d pad=%d", a->kernel, a->stride, a->pad);
}

const struct op op_maxpool = {
	.name = "maxpool",
	.id = OP_maxpool,
	.recompute = RECOMPUTE_CHEAP,
	.shape = maxpool_shape,
	.grad = maxpool_backward,
	.dump = maxpool_dump,
};

const struct op op_maxpool_grad = {
	.name = "maxpool_grad",
	.id = OP_maxpool_grad,
	.shape = maxpool_grad_shape,
	.dump = maxpool_dump,
};

/* ---- ref ----
 * The windowed maximum, and its gradient scattered to the maxima. */

/* First row or column of the window of output p; may be outside the image. */
static int64_t find_window_start(const struct maxpool_attr *a, int64_t p)
{
	return p * a->stride - a->pad;
}

/* Finds the maximum of one window and channel: returns its position r * kernel + s, *best is its value. x points to the
 * channel in one image. */
static uint8_t find_window_max(const struct maxpool_attr *a, const double *x, int64_t p, int64_t q, double *best)
{
	const int64_t *in = a->in_shape.dim;
	int found = -1;

	for (int place = 0; place < a->kernel * a->kernel; place++) {
		int64_t h = find_window_start(a, p) + place / a->kernel,
			w = find_window_start(a, q) + place % a->kernel;
		double v;

		if (h < 0 || h >= in[1] || w < 0 || w >= in[2])
			continue;
		v = x[(h * in[2] + w) * in[3]];
		if (found < 0 || v > *best || (isnan(v) && !isnan(*best))) {
			found = place;
			*best = v;
		}
	}
	return (uint8_t)found;
}

static void run_maxpool_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct maxpool_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = n->out[0]->shape.dim;
	const double *x = args->in[0];
	double *y = args->out[0];
	uint8_t *index = args->out[1];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++) {
		int64_t c = i % out[3], q = i / out[3] % out[2], p = i / out[3] / out[2] % out[1];
		int64_t image = i / (out[1] * out[2] * out[3]);

		index[i] = find_window_max(a, x + image * in[1] * in[2] * in[3] + c, p, q, &y[i]);
	}
}

static void run_maxpool_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct maxpool_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = n->in[0]->shape.dim;
	const double *dy = args->in[0];
	const uint8_t *index = args->in[1];
	double *dx = args->out[0];

	memset(dx, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		int64_t c = i % out[3], q = i / out[3] % out[2], p = i / out[3] / out[2] % out[1];
		int64_t image = i / (out[1] * out[2] * out[3]);
		int64_t h = find_window_start(a, p) + index[i] / a->kernel,
			w = find_window_start(a, q) + index[i] % a->kernel;

		dx[((image * in[1] + h) * in[2] + w) * in[3] + c] += dy[i];
	}
}

const struct kernel maxpool_ref = REF_KERNEL(run_maxpool_ref);
const struct kernel maxpool_grad_ref = REF_KERNEL(run_maxpool_grad_ref);
