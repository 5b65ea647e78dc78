/* shard_collectives_cases.c: test cases without a communicator, where nothing changes. tests/comm covers exchanges
 * between ranks. */
#include "trainer/ops/cases.h"
#include "trainer/ops/shard_collectives/shard_collectives.h"

static struct node *build_gather_case(struct graph *g, const struct op_case *c)
{
	struct node *n = all_gather_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), false);

	if (n)
		n->stream = STREAM_COMPUTE;
	return n;
}

static struct node *build_scatter_case(struct graph *g, const struct op_case *c)
{
	struct node *n = reduce_scatter_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), 0);

	if (n)
		n->stream = STREAM_COMPUTE;
	return n;
}

const struct op_case cases_all_gather[] = {
	{ "no elements", .build = build_gather_case, .exact = true, .size = { 0 } },
	{ "one rank", .build = build_gather_case, .exact = true, .size = { 37 } },
	{ NULL },
};

const struct op_case cases_reduce_scatter[] = {
	{ "no elements", .build = build_scatter_case, .exact = true, .size = { 0 } },
	{ "one rank", .build = build_scatter_case, .exact = true, .size = { 37 } },
	{ NULL },
};
