/* sgd.c: optimiser steps as nodes, one per parameter. */
#include "trainer/ops/sgd/sgd.h"

#include "trainer/ops/ops.h"

static struct tensor *add_moment(struct graph *g, const struct tensor *p)
{
	struct tensor like = { .kind = TENSOR_MOMENT,
			       .dtype = p->dtype,
			       .shape = p->shape,
			       .life = LIFE_PERSISTENT,
			       .name = graph_printf(g, "%s.momentum", p->name) };

	return like.name ? graph_tensor(g, &like) : NULL;
}

static void add_step(struct graph *g, struct tensor *p, const struct sgd_attr *attr)
{
	struct tensor *m = attr->momentum != 0 ? add_moment(g, p) : NULL;
	struct sgd_attr a = *attr;

	if (!p->decay)
		a.weight_decay = 0;
	graph_node(g, &(struct node_spec){ .op = &op_sgd,
					   .name = graph_printf(g, "%s.sgd", p->name),
					   NODE_IN(p, p->grad, m),
					   NODE_OUT(p, m),
					   NODE_ATTR(a) });
}

int sgd_add_all(struct graph *g, const struct sgd_attr *attr)
{
	enum phase before = g->phase;
	int n = g->n_tensors; /* the moments come behind */

	g->phase = PHASE_OPTIMIZER;
	for (int i = 0; i < n && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			add_step(g, g->tensors[i], attr);
	g->phase = before;
	return g->err.code;
}

static int sgd_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0], *grad = n->in[1], *m = n->in[2];

	return graph_expect(g, n,
			    shape_equal(&p->shape, &grad->shape) && (!m || shape_equal(&p->shape, &m->shape)) &&
				    n->out[0] == p && n->out[1] == m,
			    "parameter, gradient and moment differ in shape");
}

static int sgd_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : 2;
}

static void sgd_dump(const struct node *n, struct buf *out)
{
	const struct sgd_attr *a = n->attr;

	buf_addf(out, " momentum=%g weight_decay=%g%s", a->momentum, a->weight_decay, a->nesterov ? " nesterov" : "");
}

const struct op op_sgd = {
	.name = "sgd",
	.id = OP_sgd,
	.shape = sgd_shape,
	.dtype = op_dtype_keep,
	.inplace = sgd_inplace,
	.dump = sgd_dump,
};
