/* norm_exact.c: exact sums of squares as nodes. Ranks exchange a few hundred bytes, independent of the number of
 * tensors. */
#include "trainer/ops/norm/norm_exact.h"

#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"

/* Adds the exact sum of squares of this rank's part of t, once per tensor. */
static struct tensor *add_own_sum(struct graph *g, struct tensor *t)
{
	const char *name = graph_printf(g, "%s.exact", t->name);
	struct tensor *known = name ? graph_find(g, name) : NULL;
	struct node *n;

	if (known || !name)
		return known;
	n = graph_node(g, &(struct node_spec){ .op = &op_squares, .name = graph_printf(g, "%s.squares", t->name),
					       NODE_IN(t), NODE_OUT(NULL) });
	n = n ? graph_node(g, &(struct node_spec){ .op = &op_exact, .name = name, NODE_IN(n->out[0]), NODE_OUT(NULL) })
	      : NULL;
	return n ? n->out[0] : NULL;
}

/* Adds a norm node over `sums`: the exact sum of all with attr->sum, else its value. */
static struct tensor *add_norm_total(struct graph *g, struct tensor *const *sums, int n, const struct norm_attr *attr,
			    const char *name)
{
	struct node *node = graph_node(g, &(struct node_spec){ .op = &op_norm, .name = name, .in = sums, .n_in = n,
							       NODE_OUT(NULL), .attr = attr,
							       .attr_bytes = sizeof(*attr) });

	return node ? node->out[0] : NULL;
}

/* Reduces into a new tensor, since the rank's own sum may be a term of several reductions. */
static struct tensor *add_group_sum(struct graph *g, struct tensor *sum, enum group group)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_allreduce, .name = graph_printf(g, "%s.allreduce", sum->name),
					       NODE_IN(sum), NODE_OUT(NULL) });
	if (!n)
		return NULL;
	n->stream = STREAM_COMPUTE;
	n->phase = PHASE_COMM;
	n->group = group;
	return n->out[0];
}

struct tensor *exact_sumsq(struct graph *g, struct tensor *t, const char *name)
{
	const struct norm_attr square = { .square = true };
	struct tensor *sum = add_own_sum(g, t);

	if (sum && t->shard.each)
		sum = add_group_sum(g, sum, GROUP_SHARD);
	return sum ? add_norm_total(g, &sum, 1, &square, name) : NULL;
}

int exact_collect(struct graph *g, struct tensor **sums, bool pipeline)
{
	const struct norm_attr sum = { .sum = true };
	int n = 0, shared = 0;

	for (int of_ranges = 1; of_ranges >= 0; of_ranges--) {
		for (int i = 0, max = g->n_tensors; i < max && !graph_failed(g); i++) {
			struct tensor *grad = g->tensors[i]->kind == TENSOR_PARAM ? g->tensors[i]->grad : NULL;

			if (grad && !grad->elsewhere && (grad->shard.each > 0) == of_ranges)
				sums[n++] = add_own_sum(g, grad);
		}
		shared = of_ranges ? n : shared;
		if (of_ranges && shared && !graph_failed(g)) {
			sums[0] = add_group_sum(g, add_norm_total(g, sums, n, &sum, "grad_norm.own"), GROUP_SHARD);
			n = 1;
		}
	}
	if (pipeline && n && !graph_failed(g)) {
		sums[0] = add_group_sum(g, add_norm_total(g, sums, n, &sum, "grad_norm.stage"), GROUP_PIPELINE);
		n = 1;
	}
	return n;
}
