/* sendrecv.c: see sendrecv.h. */
#include "trainer/ops/sendrecv/sendrecv.h"

#include "trainer/ops/ops.h"

static struct node *add_peer_node(struct graph *g, struct node_spec *spec, const char *name, int rank)
{
	const struct sendrecv_attr attr = { rank };
	struct node *n;

	if (graph_failed(g))
		return NULL;
	spec->name = graph_printf(g, "%s.%s", name, spec->op->name);
	spec->attr = &attr;
	spec->attr_bytes = sizeof(attr);
	n = graph_node(g, spec);
	if (!n)
		return NULL;
	n->group = GROUP_PIPELINE;
	n->phase = PHASE_COMM;
	return n;
}

struct node *send_add(struct graph *g, struct tensor *t, int to, enum stream stream)
{
	struct node *n = add_peer_node(g, &(struct node_spec){ .op = &op_send, NODE_IN(t) }, t->name, to);

	if (n)
		n->stream = stream;
	return n;
}

struct node *recv_add(struct graph *g, struct tensor *t, int from, enum stream stream)
{
	struct node *n = add_peer_node(g, &(struct node_spec){ .op = &op_recv, NODE_OUT(t) }, t->name, from);

	if (n)
		n->stream = stream;
	return n;
}

static int peer_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, n->n_in + n->n_out == 1, "expected exactly one tensor");
}

static void peer_dump(const struct node *n, struct buf *out)
{
	buf_addf(out, " peer=%d", ((const struct sendrecv_attr *)n->attr)->rank);
}

const struct op op_send = {
	.name = "send",
	.id = OP_send,
	.shape = peer_shape,
	.dtype = op_dtype_keep,
	.recompute = RECOMPUTE_NEVER,
	.collective = true,
	.dump = peer_dump,
};

const struct op op_recv = {
	.name = "recv",
	.id = OP_recv,
	.shape = peer_shape,
	.dtype = op_dtype_keep,
	.recompute = RECOMPUTE_NEVER,
	.collective = true,
	.dump = peer_dump,
};
