/* norm_add.c: sums of squares and the norm of all gradients together, as nodes. */
#include "trainer/ops/norm/norm.h"

#include "trainer/ops/allreduce/allreduce.h"
#include "trainer/ops/norm/norm_exact.h"
#include "trainer/ops/ops.h"

static struct tensor *add_sumsq(struct graph *g, struct tensor *t, struct tensor *out)
{
	struct node *n = graph_node(g, &(struct node_spec){ .op = &op_sumsq,
							    .name = graph_printf(g, "%s.sumsq", t->name),
							    NODE_IN(t),
							    NODE_OUT(out) });

	return n ? n->out[0] : NULL;
}

static void add_over_ranks(struct graph *g, struct tensor *t)
{
	struct node *n = allreduce_add(g, t, STREAM_COMPUTE);

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
	sum = add_sumsq(g, t, NULL);
	if (sum && t->shard.each)
		add_over_ranks(g, sum);
	return sum;
}

#define ROOM_BYTES 64 /* of one sum: as far apart as any tensors are */

/* Room for the sums of what is shared out, behind one another, so that they are added over the ranks at once. */
static struct tensor *add_room(struct graph *g, int count)
{
	struct tensor like = { .name = "grad_norm.sums",
			       .kind = TENSOR_ACT,
			       .dtype = DTYPE_F64,
			       .shape = SHAPE(count * (ROOM_BYTES / 8)),
			       .life = LIFE_STEP,
			       .space = SPACE_COMM };

	return graph_tensor(g, &like);
}

static struct tensor *sum_in(struct graph *g, struct tensor *room, int at, struct tensor *t)
{
	struct tensor like = { .kind = TENSOR_ACT, .dtype = DTYPE_F64, .shape = SHAPE(1), .life = LIFE_STEP,
			       .space = SPACE_COMM, .base = room, .base_offset = (size_t)at * ROOM_BYTES,
			       .name = graph_printf(g, "%s.sumsq", t->name) };
	struct tensor *out = like.name ? graph_tensor(g, &like) : NULL;

	return out ? add_sumsq(g, t, out) : NULL;
}

static bool wants(const struct tensor *p)
{
	return p->kind == TENSOR_PARAM && p->grad && !p->grad->elsewhere;
}

static int collect(struct graph *g, struct tensor **sums, int max)
{
	struct tensor *room = NULL;
	int n = 0, shared = 0, at = 0;

	for (int i = 0; i < max; i++)
		shared += wants(g->tensors[i]) && g->tensors[i]->grad->shard.each;
	room = shared ? add_room(g, shared) : NULL;
	for (int i = 0; i < max && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (wants(p))
			sums[n++] = p->grad->shard.each ? sum_in(g, room, at++, p->grad) : norm_sumsq(g, p->grad);
	}
	if (room && !graph_failed(g))
		add_over_ranks(g, room);
	return n;
}

/* The sum of a stage's squares, then of all stages'. */
static int over_stages(struct graph *g, const struct node_spec *spec, struct tensor **sums)
{
	const struct norm_attr attr = { .sum = true };
	struct node *own = graph_node(g, &(struct node_spec){ .op = &op_norm,
							      .name = "grad_norm.stage",
							      .in = spec->in,
							      .n_in = spec->n_in,
							      NODE_OUT(NULL),
							      NODE_ATTR(attr) });
	struct node *sum = own ? allreduce_add(g, own->out[0], STREAM_COMPUTE) : NULL;

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
	spec.n_in = g->exact ? exact_collect(g, sums, pipeline) : collect(g, sums, max);
	spec.in = sums;
	if (pipeline && !g->exact)
		spec.n_in = over_stages(g, &spec, sums);
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
