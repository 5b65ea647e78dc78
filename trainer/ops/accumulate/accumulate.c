/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.c: adds nodes that sum over the micro-batches of a step. Each follows the node that completes its term, so
 * that the term's memory is freed at once. */
#include "trainer/ops/accumulate/accumulate.h"

#include "trainer/ops/ops.h"

/* Positions of the last node that writes each tensor, by id; -1 for none. */
static int *find_last_writers(struct graph *g)
{
	int *last = graph_array(g, g->n_tensors, sizeof(*last));

	for (int i = 0; i < g->n_tensors; i++)
		last[i] = -1;
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_out; k++)
			if (g->nodes[i]->out[k])
				last[g->nodes[i]->out[k]->id] = i;
	return last;
}

/* Appends the node that adds t, which the node at position `at` completes, to its sum. */
static struct tensor *add_micro_sum(struct graph *g, struct tensor *t, int at)
{
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
	return sum;
}

void accumulate_grads(struct graph *g)
{
	const int n = g->n_tensors, from = g->n_nodes; /* the sums are appended after these */
	const int *last = find_last_writers(g);
	int *after = graph_array(g, n, sizeof(*after));

	for (int i = 0; i < n && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (p->kind != TENSOR_PARAM || !p->grad)
			continue;
		after[g->n_nodes - from] = last[p->grad->id];
		p->grad = add_micro_sum(g, p->grad, last[p->grad->id]);
	}
	graph_spread(g, from, after);
}

void accumulate_loss(struct graph *g)
{
	const int *last = graph_failed(g) || !g->loss ? NULL : find_last_writers(g);
	const int from = g->n_nodes, after = last ? last[g->loss->id] : -1;
	struct tensor *sum = last ? add_micro_sum(g, g->loss, after) : NULL;

	if (!sum)
		return;
	graph_spread(g, from, &after);
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

static void run_accumulate_ref(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const double *x = args->in[1];
	double *s = args->out[0];

	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		s[i] = args->page->micro ? s[i] + x[i] : x[i];
}

const struct kernel accumulate_ref = REF_KERNEL(run_accumulate_ref);
