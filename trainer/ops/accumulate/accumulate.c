/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c: adds nodes that sum over the micro-batches of a step. Each follows the node that completes its term, so
 * that the term's memory is freed at once. */
#include "trainer/ops/accumulate/accumulate.h"

#include "trainer/ops/ops.h"

/* Position of the last node that writes t; -1 for none. */
static int find_last_writer(const struct graph *g, const struct tensor *t)
{
	for (int i = g->n_nodes - 1; i >= 0; i--)
		for (int k = 0; k < g->nodes[i]->n_out; k++)
			if (g->nodes[i]->out[k] == t)
				return i;
	return -1;
}

static struct tensor *add_micro_sum(struct graph *g, struct tensor *t)
{
	int at = find_last_writer(g, t);
	struct tensor like = { .kind = t->kind, .dtype = t->dtype, .shape = t->shape, .life = LIFE_ACROSS,
			       .shard = t->shard };
	struct tensor *sum;
	struct node *n;

	like.name = graph_printf(g, "%s.acc", t->name);
	sum = like.name ? graph_tensor(g, &like) : NULL;
	n = graph_node(g,
		       &(struct node_spec){ .op = &op_accumulate, .name = like.name, NODE_IN(sum, t), NODE_OUT(sum) });
	if (!n)
		return NULL;
	n->phase = at >= 0 ? g->nodes[at]->phase : n->phase;
	graph_move(g, n->id, at + 1);
	return sum;
}

void accumulate_grads(struct graph *g)
{
	int n = g->n_tensors; /* the sums are appended after these */

	for (int i = 0; i < n && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			g->tensors[i]->grad = add_micro_sum(g, g->tensors[i]->grad);
}

void accumulate_loss(struct graph *g)
{
	struct tensor *sum = graph_failed(g) || !g->loss ? NULL : add_micro_sum(g, g->loss);

	if (sum)
		g->loss = sum;
}

static int accumulate_shape(struct graph *g, struct node *n)
{
	const struct tensor *s = n->in[0], *x = n->in[1];

	return graph_expect(g, n, shape_equal(&s->shape, &x->shape) && s->dtype == x->dtype && n->out[0] == s,
			    "sum and term differ in shape or type");
}

const struct op op_accumulate = {
	.name = "accumulate",
	.id = OP_accumulate,
	.shape = accumulate_shape,
	.dtype = op_dtype_keep,
};

/* ---- ref ----
 * The sum over micro-batches, elementwise. */

static int run_accumulate_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *x = args->in[1];
	double *s = args->out[0];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		s[i] = args->page->micro ? s[i] + x[i] : x[i];
	return 0;
}

const struct kernel accumulate_ref = REF_KERNEL(run_accumulate_ref);
