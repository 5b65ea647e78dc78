/* shard_collectives.c: see shard_collectives.h. */
#include "trainer/ops/shard_collectives/shard_collectives.h"

#include "trainer/ops/ops.h"

static struct node *add_shares_node(struct graph *g, struct tensor *t, const struct op *op,
				    const struct shard_collectives_attr *attr)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = op,
					       .name = graph_printf(g, "%s.%s", t->name, op->name),
					       NODE_IN(t),
					       NODE_OUT(t),
					       .attr = attr,
					       .attr_bytes = sizeof(*attr) });
	if (!n)
		return NULL;
	n->stream = op == &op_all_gather ? STREAM_GATHER : STREAM_COMM;
	n->group = GROUP_SHARD;
	n->phase = PHASE_COMM;
	return n;
}

struct node *all_gather_add(struct graph *g, struct tensor *t, bool once)
{
	struct node *n = add_shares_node(g, t, &op_all_gather, &(struct shard_collectives_attr){ .terms.room = 0 });

	if (n)
		n->once = once;
	return n;
}

struct node *reduce_scatter_add(struct graph *g, struct tensor *t, int room)
{
	return add_shares_node(g, t, &op_reduce_scatter, &(struct shard_collectives_attr){ .terms.room = room });
}

static int shares_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, n->out[0] == n->in[0], "ranges must be exchanged in place");
}

static void shares_dump(const struct node *n, struct buf *out)
{
	if (n->once)
		buf_adds(out, " once");
}

const struct op op_all_gather = {
	.name = "all_gather",
	.id = OP_all_gather,
	.shape = shares_shape,
	.dtype = op_dtype_keep,
	.inplace = op_inplace_same,
	.collective = true,
	.dump = shares_dump,
};

const struct op op_reduce_scatter = {
	.name = "reduce_scatter",
	.id = OP_reduce_scatter,
	.shape = shares_shape,
	.dtype = op_dtype_keep,
	.inplace = op_inplace_same,
	.collective = true,
};
