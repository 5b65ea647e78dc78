/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c: see collectives.h. */
#include "trainer/ops/collectives/collectives.h"

#include "trainer/ops/collectives/collectives_host.h"
#include "trainer/ops/ops.h"

struct collective_place {
	enum stream stream;
	enum group group;
};

/* Appends the node of an op whose input, or output for recv, is t. */
static struct node *add_collective(struct graph *g, const struct op *op, struct tensor *t,
				   const struct collective_attr *attr, struct collective_place place)
{
	struct tensor *operand[] = { t };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = op,
					       .name = graph_printf(g, "%s.%s", t->name, op->name),
					       .in = operand,
					       .n_in = op != &op_recv,
					       .out = operand,
					       .n_out = op != &op_send,
					       NODE_ATTR(*attr) });
	if (!n)
		return NULL;
	n->stream = place.stream;
	n->group = place.group;
	n->phase = PHASE_COMM;
	return n;
}

struct node *allreduce_add(struct graph *g, struct tensor *t, int room, enum stream stream)
{
	return add_collective(g, &op_allreduce, t, &(struct collective_attr){ .terms.room = room },
			      (struct collective_place){ stream, GROUP_WORLD });
}

struct node *all_gather_add(struct graph *g, struct tensor *t, bool once)
{
	struct node *n = add_collective(g, &op_all_gather, t, &(struct collective_attr){ .rank = 0 },
					(struct collective_place){ STREAM_GATHER, GROUP_SHARD });

	if (n)
		n->once = once;
	return n;
}

struct node *reduce_scatter_add(struct graph *g, struct tensor *t, int room)
{
	return add_collective(g, &op_reduce_scatter, t, &(struct collective_attr){ .terms.room = room },
			      (struct collective_place){ STREAM_COMM, GROUP_SHARD });
}

struct node *send_add(struct graph *g, struct tensor *t, int to, enum stream stream)
{
	return add_collective(g, &op_send, t, &(struct collective_attr){ .rank = to },
			      (struct collective_place){ stream, GROUP_PIPELINE });
}

struct node *recv_add(struct graph *g, struct tensor *t, int from, enum stream stream)
{
	return add_collective(g, &op_recv, t, &(struct collective_attr){ .rank = from },
			      (struct collective_place){ stream, GROUP_PIPELINE });
}

static int allreduce_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

static int shard_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, n->out[0] == n->in[0], "ranges must be exchanged in place");
}

static int peer_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, n->n_in + n->n_out == 1, "expected exactly one tensor");
}

static void all_gather_dump(const struct node *n, struct buf *out)
{
	if (n->once)
		buf_adds(out, " once");
}

static void peer_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " peer=%d", ((const struct collective_attr *)n->attr)->rank);
}

#define COLLECTIVE_OP(op_name, ...)                                                                                    \
	const struct op op_##op_name = { .name = #op_name, .id = OP_##op_name, .dtype = op_dtype_keep,                 \
					 .collective = true, __VA_ARGS__ }

COLLECTIVE_OP(allreduce, .shape = allreduce_shape, .inplace = op_inplace_same);
COLLECTIVE_OP(all_gather, .shape = shard_shape, .inplace = op_inplace_same, .dump = all_gather_dump);
COLLECTIVE_OP(reduce_scatter, .shape = shard_shape, .inplace = op_inplace_same);
COLLECTIVE_OP(send, .shape = peer_shape, .recompute = RECOMPUTE_NEVER, .dump = peer_dump);
COLLECTIVE_OP(recv, .shape = peer_shape, .recompute = RECOMPUTE_NEVER, .dump = peer_dump);

/* ---- ref ----
 * The collectives of collectives_host.h. */

COLLECTIVE_KERNELS(ref);
