/* norm.c: sums of squares and the norm of all gradients together. */
#include "trainer/ops/norm/norm.h"

#include "trainer/ops/ops.h"

struct tensor *norm_sumsq(struct graph *g, struct tensor *t)
{
	const char *name = t ? graph_printf(g, "%s.sumsq", t->name) : NULL;
	struct tensor *known = name ? graph_find(g, name) : NULL;
	struct node *n;

	if (known || !name)
		return known;
	n = graph_node(g, &(struct node_spec){ .op = &op_sumsq, .name = name, NODE_IN(t), NODE_OUT(NULL) });
	return n ? n->out[0] : NULL;
}

static int collect(struct graph *g, struct tensor **sums, int max)
{
	int n = 0;

	for (int i = 0; i < max && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (p->kind != TENSOR_PARAM || !p->grad)
			continue;
		sums[n++] = norm_sumsq(g, p->grad);
	}
	return n;
}

struct tensor *norm_add_all(struct graph *g)
{
	enum phase before = g->phase;
	int max = g->n_tensors;
	struct tensor **sums = arena_array(g->arena, (size_t)max + 1, sizeof(*sums)), *result;
	struct node_spec spec = { .op = &op_norm, .name = "grad_norm", .n_out = 1 };

	if (!sums) {
		graph_fail(g, ERR_NOMEM, "out of memory while building the graph");
		return NULL;
	}
	g->phase = PHASE_OPTIMIZER;
	spec.n_in = collect(g, sums, max);
	spec.in = sums;
	result = graph_tensor(g, &(struct tensor){ .name = "grad_norm",
						   .kind = TENSOR_RESULT,
						   .dtype = DTYPE_F64,
						   .shape = SHAPE(1),
						   .life = LIFE_STEP });
	spec.out = &result;
	graph_node(g, &spec);
	g->phase = before;
	return graph_failed(g) ? NULL : result;
}

static int sumsq_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, DTYPE_F64, SHAPE(1), "");
}

static int norm_shape(struct graph *g, struct node *n)
{
	for (int i = 0; i < n->n_in; i++)
		if (graph_expect(g, n, shape_count(&n->in[i]->shape) == 1, "sums of squares are single numbers"))
			return g->err.code;
	return graph_out(g, n, 0, DTYPE_F64, SHAPE(1), "");
}

const struct op op_sumsq = {
	.name = "sumsq",
	.id = OP_sumsq,
	.shape = sumsq_shape,
	.dtype = op_dtype_keep,
};

const struct op op_norm = {
	.name = "norm",
	.id = OP_norm,
	.shape = norm_shape,
	.dtype = op_dtype_keep,
};
