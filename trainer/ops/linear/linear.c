/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c: shape rules and gradients of the fully connected layer. */
#include "trainer/ops/linear/linear.h"

#include <string.h>

#include "trainer/ops/ops.h"

static struct tensor *add_linear_node(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b, bool low)
{
	struct linear_attr attr = { .low = low };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_linear,
					       .name = graph_stem(g, w->name),
					       NODE_IN(x, w, b),
					       NODE_OUT(NULL),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

struct tensor *linear_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b)
{
	return add_linear_node(g, x, w, b, false);
}

struct tensor *linear_add_low(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b)
{
	return add_linear_node(g, x, w, b, true);
}

static bool is_linear_matrix(const struct tensor *t)
{
	return t->shape.ndim == 2;
}

static int linear_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];

	if (graph_expect(g, n,
			 is_linear_matrix(x) && is_linear_matrix(w) && x->shape.dim[1] == w->shape.dim[1] &&
				 (!b || (b->shape.ndim == 1 && b->shape.dim[0] == w->shape.dim[0])),
			 "expected x [N,C], w [K,C] and b [K]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(x->dtype, SHAPE(x->shape.dim[0], w->shape.dim[0])), "");
}

static int linear_dgrad_shape(struct graph *g, struct node *n)
{
	const struct tensor *dy = n->in[0], *w = n->in[1];

	if (graph_expect(g, n, is_linear_matrix(dy) && is_linear_matrix(w) && dy->shape.dim[1] == w->shape.dim[0],
			 "expected dy [N,K] and w [K,C]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(dy->dtype, SHAPE(dy->shape.dim[0], w->shape.dim[1])), "");
}

static int linear_wgrad_shape(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *dy = n->in[1];

	if (graph_expect(g, n, is_linear_matrix(x) && is_linear_matrix(dy) && x->shape.dim[0] == dy->shape.dim[0],
			 "expected x [N,C] and dy [N,K]") ||
	    graph_out(g, n, 0, TENSOR_TYPE(x->dtype, SHAPE(dy->shape.dim[1], x->shape.dim[1])), ""))
		return g->err.code;
	return n->out[1] ? graph_out(g, n, 1, TENSOR_TYPE(x->dtype, SHAPE(dy->shape.dim[1])), ".bias") : 0;
}

/* Adds dw and db, then dx. */
static int linear_backward(struct graph *g, struct node *n)
{
	struct tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *dy = graph_grad_get(g, n->out[0]), *dw, *db = NULL;
	struct node *back;

	if (!dy)
		return 0;
	if (w->wants_grad || (b && b->wants_grad)) {
		dw = graph_param_grad(g, w);
		if (b)
			db = graph_param_grad(g, b);
		graph_node(g, &(struct node_spec){ .op = &op_linear_wgrad,
						   .name = graph_printf(g, "%s.dw", n->name),
						   NODE_IN(x, dy),
						   NODE_OUT(dw, db) });
		graph_grad_add(g, w, dw);
		if (b)
			graph_grad_add(g, b, db);
	}
	if (x->wants_grad) {
		back = graph_node(g, &(struct node_spec){ .op = &op_linear_dgrad,
							  .name = graph_printf(g, "%s.dx", n->name),
							  NODE_IN(dy, w),
							  NODE_OUT(NULL) });
		graph_grad_add(g, x, back ? back->out[0] : NULL);
	}
	return g->err.code;
}

/* The bias has the master type, since it is added to the f32 sum. */
static enum dtype_class linear_dtype(const struct node *n, bool is_out, int index)
{
	const struct linear_attr *a = n->attr;

	return is_out	    ? (a->low ? DTYPE_CLASS_LOW : DTYPE_CLASS_MASTER)
	       : index == 2 ? DTYPE_CLASS_MASTER
			    : DTYPE_CLASS_LOW;
}

static double linear_flops(const struct node *n)
{
	return 2.0 * (double)shape_count(&n->out[0]->shape) * (double)n->in[0]->shape.dim[1];
}

static double linear_wgrad_flops(const struct node *n)
{
	return 2.0 * (double)shape_count(&n->out[0]->shape) * (double)n->in[0]->shape.dim[0];
}

const struct op op_linear = {
	.name = "linear",
	.id = OP_linear,
	.shape = linear_shape,
	.grad = linear_backward,
	.dtype = linear_dtype,
	.flops = linear_flops,
};

const struct op op_linear_dgrad = {
	.name = "linear_dgrad",
	.id = OP_linear_dgrad,
	.shape = linear_dgrad_shape,
	.flops = linear_flops,
};

const struct op op_linear_wgrad = {
	.name = "linear_wgrad",
	.id = OP_linear_wgrad,
	.shape = linear_wgrad_shape,
	.dtype = op_dtype_sums,
	.flops = linear_wgrad_flops,
};

/* ---- ref ----
 * The fully connected layer, row by row. */

static void run_linear_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	int64_t n = node->out[0]->shape.dim[0], k = node->out[0]->shape.dim[1], c = node->in[0]->shape.dim[1];
	const double *x = args->in[0], *w = args->in[1], *b = args->in[2];
	double *y = args->out[0];

	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			y[i * k + j] = ref_dot(x + i * c, w + j * c, c) + (b ? b[j] : 0);
}

static void run_linear_dgrad_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	int64_t n = node->in[0]->shape.dim[0], k = node->in[0]->shape.dim[1], c = node->out[0]->shape.dim[1];
	const double *dy = args->in[0], *w = args->in[1];
	double *dx = args->out[0];

	memset(dx, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++)
			ref_axpy(dx + i * c, dy[i * k + j], w + j * c, c);
}

static void run_linear_wgrad_ref(void *state, const struct kernel_args *args)
{
	const struct node *node = state;
	int64_t n = node->in[0]->shape.dim[0], c = node->in[0]->shape.dim[1], k = node->in[1]->shape.dim[1];
	const double *x = args->in[0], *dy = args->in[1];
	double *dw = args->out[0], *db = args->out[1];

	memset(dw, 0, tensor_bytes(node->out[0]));
	if (db)
		memset(db, 0, tensor_bytes(node->out[1]));
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < k; j++) {
			ref_axpy(dw + j * c, dy[i * k + j], x + i * c, c);
			if (db)
				db[j] += dy[i * k + j];
		}
}

const struct kernel linear_ref = REF_KERNEL(run_linear_ref);
const struct kernel linear_dgrad_ref = REF_KERNEL(run_linear_dgrad_ref);
const struct kernel linear_wgrad_ref = REF_KERNEL(run_linear_wgrad_ref);
