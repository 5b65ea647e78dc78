/* allreduce_cases.c: test cases without a communicator: the sum is the tensor itself. tests/comm covers sums over
 * ranks. */
#include "trainer/ops/allreduce/allreduce.h"
#include "trainer/ops/cases.h"

static struct node *build_allreduce_case(struct graph *g, const struct op_case *c)
{
	struct tensor *t = case_input(g, "t", DTYPE_F32, SHAPE(c->size[0]));

	return graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(t), NODE_OUT(NULL) });
}

static struct node *build_allreduce_in_place_case(struct graph *g, const struct op_case *c)
{
	return allreduce_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), STREAM_COMPUTE);
}

const struct op_case cases_allreduce[] = {
	{ "no elements", .build = build_allreduce_case, .exact = true, .size = { 0 } },
	{ "one rank", .build = build_allreduce_case, .exact = true, .size = { 37 } },
	{ "one rank, in place", .build = build_allreduce_in_place_case, .exact = true, .size = { 37 } },
	{ NULL },
};
