/* SPDX-License-Identifier: Apache-2.0 */
/* dropout.c: shape rule and gradient of dropout. */
#include "trainer/ops/dropout/dropout.h"

#include "trainer/ops/ops.h"

static struct tensor *add_dropout_node(struct graph *g, struct tensor *x, const struct dropout_attr *attr,
				       const char *name)
{
	struct node *n = graph_node(
		g,
		&(struct node_spec){ .op = &op_dropout, .name = name, NODE_IN(x), NODE_OUT(NULL), NODE_ATTR(*attr) });

	return n ? n->out[0] : NULL;
}

struct tensor *dropout_add(struct graph *g, struct tensor *x, double p, int64_t per_sample, const char *name)
{
	struct dropout_attr attr = { .p = p, .per_sample = per_sample };

	if (graph_failed(g) || p == 0 || !g->training)
		return x;
	attr.stream = rng_stream(name);
	return add_dropout_node(g, x, &attr, name);
}

static int dropout_shape(struct graph *g, struct node *n)
{
	const struct dropout_attr *a = n->attr;

	if (graph_expect(g, n, a->p >= 0 && a->p < 1 && a->per_sample > 0, "dropout probability must be in [0, 1)"))
		return g->err.code;
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int dropout_backward(struct graph *g, struct node *n)
{
	struct tensor *dy = graph_grad_get(g, n->out[0]);

	if (dy && n->in[0]->wants_grad)
		graph_grad_add(g, n->in[0], add_dropout_node(g, dy, n->attr, graph_printf(g, "%s.dx", n->name)));
	return g->err.code;
}

static void dropout_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " p=%g", ((const struct dropout_attr *)n->attr)->p);
}

const struct op op_dropout = {
	.name = "dropout",
	.id = OP_dropout,
	.recompute = RECOMPUTE_CHEAP,
	.shape = dropout_shape,
	.grad = dropout_backward,
	.inplace = op_inplace_same,
	.dump = dropout_dump,
};

/* ---- ref ----
 * Dropout, elementwise. */

static void run_dropout_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	struct dropout_draw d = dropout_draw(n->attr, args->page);
	const double *x = args->in[0];
	double *y = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		y[i] = dropout_keeps(&d, (uint64_t)i) ? x[i] * d.scale : 0;
}

const struct kernel dropout_ref = REF_KERNEL(run_dropout_ref);
