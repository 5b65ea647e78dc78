/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_cases.c: test cases without a communicator: a sum is the tensor itself, and nothing is sent. tests/comm
 * and tests/train cover exchanges between ranks. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/collectives/collectives.h"

static struct tensor *add_collective_input(struct graph *g, const struct op_case *c)
{
	return case_input(g, "t", DTYPE_F32, SHAPE(c->size[0]));
}

static struct node *build_allreduce_case(struct graph *g, const struct op_case *c)
{
	return graph_node(g, &(struct node_spec){ .op = &op_allreduce, NODE_IN(add_collective_input(g, c)),
						  NODE_OUT(NULL) });
}

static struct node *build_allreduce_in_place_case(struct graph *g, const struct op_case *c)
{
	return allreduce_add(g, add_collective_input(g, c), 0, STREAM_COMPUTE);
}

static struct node *build_gather_case(struct graph *g, const struct op_case *c)
{
	struct node *n = all_gather_add(g, add_collective_input(g, c), false);

	if (n)
		n->stream = STREAM_COMPUTE;
	return n;
}

static struct node *build_scatter_case(struct graph *g, const struct op_case *c)
{
	struct node *n = reduce_scatter_add(g, add_collective_input(g, c), 0);

	if (n)
		n->stream = STREAM_COMPUTE;
	return n;
}

static struct node *build_send_case(struct graph *g, const struct op_case *c)
{
	return send_add(g, add_collective_input(g, c), 1, STREAM_COMPUTE);
}

static struct node *build_recv_case(struct graph *g, const struct op_case *c)
{
	return recv_add(g, add_collective_input(g, c), 0, STREAM_COMPUTE);
}

const struct op_case cases_allreduce[] = {
	{ "no elements", .build = build_allreduce_case, .exact = true, .size = { 0 } },
	{ "one rank", .build = build_allreduce_case, .exact = true, .size = { 37 } },
	{ "one rank, in place", .build = build_allreduce_in_place_case, .exact = true, .size = { 37 } },
	{ NULL },
};

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

const struct op_case cases_send[] = {
	{ "no communicator", .build = build_send_case, .exact = true, .size = { 37 } },
	{ NULL },
};

const struct op_case cases_recv[] = {
	{ "no communicator", .build = build_recv_case, .exact = true, .size = { 37 } },
	{ NULL },
};
