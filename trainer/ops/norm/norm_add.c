/* norm_add.c: adds the nodes for sums of squares and for the global norm. */
#include "trainer/ops/norm/norm.h"

#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/norm/norm_exact.h"
#include "trainer/ops/ops.h"

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
	struct tensor **sums = arena_array(g->arena, (size_t)max + 1, sizeof(*sums)), *result;
	struct node_spec spec = { .op = &op_norm, .name = "grad_norm", .n_out = 1 };

	if (!sums) {
		graph_fail(g, ERR_NOMEM, "out of memory while building the graph");
		return NULL;
	}
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
