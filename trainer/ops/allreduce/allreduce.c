/* allreduce.c: the sum over ranks as a node. */
#include "trainer/ops/allreduce/allreduce.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/partial_sums/partial_sums.h"

static struct node *add_allreduce_node(struct graph *g, struct tensor *t, enum stream stream,
				       const struct partial_sums_attr *attr)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = graph_node(g, &(struct node_spec){ .op = &op_allreduce,
					       .name = graph_printf(g, "%s.allreduce", t->name),
					       NODE_IN(t),
					       NODE_OUT(t),
					       .attr = attr,
					       .attr_bytes = attr ? sizeof(*attr) : 0 });
	if (!n)
		return NULL;
	n->stream = stream;
	n->phase = PHASE_COMM;
	return n;
}

struct node *allreduce_add(struct graph *g, struct tensor *t, enum stream stream)
{
	return add_allreduce_node(g, t, stream, NULL);
}

struct node *allreduce_terms_add(struct graph *g, struct tensor *terms, int room, enum stream stream)
{
	return add_allreduce_node(g, terms, stream, &(struct partial_sums_attr){ room });
}

static int allreduce_shape(struct graph *g, struct node *n)
{
	return graph_out(g, n, 0, TENSOR_TYPE(n->in[0]->dtype, n->in[0]->shape), "");
}

const struct op op_allreduce = {
	.name = "allreduce",
	.id = OP_allreduce,
	.shape = allreduce_shape,
	.dtype = op_dtype_keep,
	.inplace = op_inplace_same,
	.collective = true,
};
