/* SPDX-License-Identifier: Apache-2.0 */
/* norm_add.c: adds the nodes for sums of squares and for the global norm. Exact sums exchange a few hundred bytes
 * between ranks, independent of the number of tensors. */
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

/* Adds f64 [1] named `name`: the sum of squares of the whole tensor, over the ranks that hold its ranges. */
static struct tensor *exact_sumsq(struct graph *g, struct tensor *t, const char *name)
{
	const struct norm_attr square = { .square = true };
	struct tensor *sum = add_own_sum(g, t);

	if (sum && t->shard.each)
		sum = add_group_sum(g, sum, GROUP_SHARD);
	return sum ? add_norm_total(g, &sum, 1, &square, name) : NULL;
}

/* Stores the exact sums of all parameters' gradients in sums[] (with room for one per tensor), reduced over ranks where
 * they are sharded or distributed over stages. Returns the number of sums that the norm combines. */
static int exact_collect(struct graph *g, struct tensor **sums, bool pipeline)
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

static struct tensor *add_sumsq_node(struct graph *g, struct tensor *t, struct tensor *out)
{
	struct node *n = graph_node(g, &(struct node_spec){ .op = &op_sumsq,
							    .name = graph_printf(g, "%s.sumsq", t->name),
							    NODE_IN(t),
							    NODE_OUT(out) });

	return n ? n->out[0] : NULL;
}

static void add_shard_reduction(struct graph *g, struct tensor *t)
{
	struct node *n = allreduce_add(g, t, 0, STREAM_COMPUTE);

	if (n)
		n->group = GROUP_SHARD;
}

struct tensor *norm_sumsq(struct graph *g, struct tensor *t)
{
	const char *name = t ? graph_printf(g, "%s.sumsq", t->name) : NULL;
	struct tensor *known = name ? graph_find(g, name) : NULL, *sum;

	if (known || !name)
		return known;
	if (g->exact)
		return exact_sumsq(g, t, name);
	sum = add_sumsq_node(g, t, NULL);
	if (sum && t->shard.each)
		add_shard_reduction(g, sum);
	return sum;
}

#define ROOM_BYTES 64 /* spacing of the sums, equal to the alignment of tensors */

/* A contiguous tensor for the sums of sharded gradients, so that one all-reduce covers them all. */
static struct tensor *add_sharded_sums(struct graph *g, int count)
{
	struct tensor like = { .name = "grad_norm.sums",
			       .kind = TENSOR_ACT,
			       .dtype = DTYPE_F64,
			       .shape = SHAPE(count * (ROOM_BYTES / 8)),
			       .life = LIFE_STEP,
			       .space = SPACE_COMM };

	return graph_tensor(g, &like);
}

static struct tensor *add_sum_at(struct graph *g, struct tensor *room, int at, struct tensor *t)
{
	struct tensor like = { .kind = TENSOR_ACT, .dtype = DTYPE_F64, .shape = SHAPE(1), .life = LIFE_STEP,
			       .space = SPACE_COMM, .base = room, .base_offset = (size_t)at * ROOM_BYTES,
			       .name = graph_printf(g, "%s.sumsq", t->name) };
	struct tensor *out = like.name ? graph_tensor(g, &like) : NULL;

	return out ? add_sumsq_node(g, t, out) : NULL;
}

static bool counts_in_norm(const struct tensor *p)
{
	return p->kind == TENSOR_PARAM && p->grad && !p->grad->elsewhere;
}

static int collect_grad_sums(struct graph *g, struct tensor **sums, int max)
{
	struct tensor *room = NULL;
	int n = 0, shared = 0, at = 0;

	for (int i = 0; i < max; i++)
		shared += counts_in_norm(g->tensors[i]) && g->tensors[i]->grad->shard.each;
	room = shared ? add_sharded_sums(g, shared) : NULL;
	for (int i = 0; i < max && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (counts_in_norm(p))
			sums[n++] = p->grad->shard.each ? add_sum_at(g, room, at++, p->grad) : norm_sumsq(g, p->grad);
	}
	if (room && !graph_failed(g))
		add_shard_reduction(g, room);
	return n;
}

/* Adds the sum of this stage's squares, then the reduction over all stages. */
static int add_stage_sum(struct graph *g, const struct node_spec *spec, struct tensor **sums)
{
	const struct norm_attr attr = { .sum = true };
	struct node *own = graph_node(g, &(struct node_spec){ .op = &op_norm,
							      .name = "grad_norm.stage",
							      .in = spec->in,
							      .n_in = spec->n_in,
							      NODE_OUT(NULL),
							      NODE_ATTR(attr) });
	struct node *sum = own ? allreduce_add(g, own->out[0], 0, STREAM_COMPUTE) : NULL;

	if (!sum)
		return 0;
	sum->group = GROUP_PIPELINE;
	sums[0] = own->out[0];
	return 1;
}

struct tensor *norm_add_all(struct graph *g, bool pipeline)
{
	enum phase before = g->phase;
	int max = g->n_tensors;
	struct tensor **sums = graph_array(g, max, sizeof(*sums)), *result;
	struct node_spec spec = { .op = &op_norm, .name = "grad_norm", .n_out = 1 };

	g->phase = PHASE_OPTIMIZER;
	spec.n_in = g->exact ? exact_collect(g, sums, pipeline) : collect_grad_sums(g, sums, max);
	spec.in = sums;
	if (pipeline && !g->exact)
		spec.n_in = add_stage_sum(g, &spec, sums);
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
