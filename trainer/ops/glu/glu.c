/* SPDX-License-Identifier: Apache-2.0 */
/* glu.c: shape rules and gradients of the gated unit. */
#include "trainer/ops/glu/glu.h"

#include <math.h>

#include "trainer/ops/ops.h"

struct tensor *glu_add(struct graph *g, struct tensor *gate, struct tensor *up, struct glu_attr attr)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_glu,
					       .name = graph_printf(g, "%s.glu", gate->name),
					       NODE_IN(gate, up),
					       NODE_OUT(NULL),
					       NODE_ATTR(attr) });
	return n ? n->out[0] : NULL;
}

static bool is_pair(const struct tensor *gate, const struct tensor *up)
{
	return gate->shape.ndim == 2 && (up ? shape_equal(&gate->shape, &up->shape) : gate->shape.dim[1] % 2 == 0);
}

static int glu_shape(struct graph *g, struct node *n)
{
	const struct tensor *gate = n->in[0], *up = n->in[1];

	if (graph_expect(g, n, is_pair(gate, up), "expected gate and up [R,F], or both in one [R,2F]"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(gate->dtype, SHAPE(gate->shape.dim[0], glu_width(gate, up))), "");
}

static int glu_grad_shape(struct graph *g, struct node *n)
{
	const struct tensor *dy = n->in[0], *gate = n->in[1], *up = n->in[2];
	struct shape rows = SHAPE(gate->shape.dim[0], glu_width(gate, up));

	if (graph_expect(g, n, is_pair(gate, up) && shape_equal(&dy->shape, &rows),
			 "expected dy, gate and up [R,F], or gate and up in one [R,2F]") ||
	    graph_out(g, n, 0, TENSOR_TYPE(gate->dtype, gate->shape), ".gate"))
		return g->err.code;
	return up ? graph_out(g, n, 1, TENSOR_TYPE(gate->dtype, gate->shape), ".up") : 0;
}

static int glu_backward(struct graph *g, struct node *n)
{
	struct tensor *gate = n->in[0], *up = n->in[1], *dy = graph_grad_get(g, n->out[0]);
	struct glu_attr attr = *(const struct glu_attr *)n->attr;
	struct node *back;

	if (!dy || !(gate->wants_grad || (up && up->wants_grad)))
		return 0;
	back = graph_node(g, &(struct node_spec){ .op = &op_glu_grad,
						  .name = graph_printf(g, "%s.dx", n->name),
						  NODE_IN(dy, gate, up),
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr) });
	graph_grad_add(g, gate, back ? back->out[0] : NULL);
	if (up)
		graph_grad_add(g, up, back ? back->out[1] : NULL);
	return g->err.code;
}

/* dgate may overwrite gate, and dup up. */
static int glu_grad_inplace(const struct node *n, int out)
{
	return out == 0 || n->in[2] ? out + 1 : -1;
}

static void glu_dump(const struct node *n, struct buf *out)
{
	const struct glu_attr *a = n->attr;

	buf_addf(out, " slope=%g cubic=%g", a->slope, a->cubic);
}

/* y may overwrite gate if it has its rows. */
static int glu_inplace(const struct node *n, int out)
{
	return n->in[1] ? out : -1;
}

const struct op op_glu = {
	.name = "glu",
	.id = OP_glu,
	.recompute = RECOMPUTE_CHEAP,
	.shape = glu_shape,
	.grad = glu_backward,
	.inplace = glu_inplace,
	.dump = glu_dump,
};

const struct op op_glu_grad = {
	.name = "glu_grad",
	.id = OP_glu_grad,
	.shape = glu_grad_shape,
	.inplace = glu_grad_inplace,
	.dump = glu_dump,
};

/* ---- ref ----
 * Element by element. */

static double sigmoid_of_gate(const struct glu_attr *a, double x)
{
	return 1 / (1 + exp(-a->slope * x * (1 + a->cubic * x * x)));
}

static void run_glu_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	int64_t f = glu_width(n->in[0], n->in[1]), step = n->in[0]->shape.dim[1];
	const double *gate = args->in[0], *up = n->in[1] ? args->in[1] : gate + f;
	double *y = args->out[0];

	for (int64_t r = 0; r < n->in[0]->shape.dim[0]; r++)
		for (int64_t i = 0; i < f; i++) {
			double x = gate[r * step + i];

			y[r * f + i] = x * sigmoid_of_gate(n->attr, x) * up[r * step + i];
		}
}

/* With s the sigmoid: d(x s)/dx = s + x s (1 - s) du/dx. */
static void run_glu_grad_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const struct glu_attr *a = n->attr;
	int64_t f = glu_width(n->in[1], n->in[2]), step = n->in[1]->shape.dim[1];
	const double *dy = args->in[0], *gate = args->in[1], *up = n->in[2] ? args->in[2] : gate + f;
	double *dgate = args->out[0], *dup = n->in[2] ? args->out[1] : dgate + f;

	for (int64_t r = 0; r < n->in[1]->shape.dim[0]; r++)
		for (int64_t i = 0; i < f; i++) {
			double x = gate[r * step + i], u = up[r * step + i], s = sigmoid_of_gate(a, x);
			double slope = s + x * s * (1 - s) * a->slope * (1 + 3 * a->cubic * x * x);

			dgate[r * step + i] = dy[r * f + i] * u * slope;
			dup[r * step + i] = dy[r * f + i] * x * s;
		}
}

const struct kernel glu_ref = REF_KERNEL(run_glu_ref);
const struct kernel glu_grad_ref = REF_KERNEL(run_glu_grad_ref);
