/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool_cases.c: test cases of avgpool and avgpool_grad. */
#include "trainer/ops/avgpool/avgpool.h"
#include "tests/ops/cases/cases.h"

static struct avgpool_attr make_avgpool_attr(const struct op_case *c)
{
	return (struct avgpool_attr){ SHAPE(c->size[0], c->size[1], c->size[2], c->size[3]) };
}

static struct node *build_avgpool_case(struct graph *g, const struct op_case *c)
{
	struct avgpool_attr attr = make_avgpool_attr(c);

	return graph_node(g, &(struct node_spec){ .op = &op_avgpool,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, attr.in_shape)) });
}

static struct node *build_avgpool_grad_case(struct graph *g, const struct op_case *c)
{
	struct avgpool_attr attr = make_avgpool_attr(c);

	return graph_node(
		g, &(struct node_spec){ .op = &op_avgpool_grad,
					NODE_OUT(NULL),
					NODE_ATTR(attr),
					NODE_IN(case_input(g, "dy", DTYPE_F32, SHAPE(c->size[0], c->size[3]))) });
}

#define SHAPES(b)                                                                                                      \
	{ "no images", .build = (b), .size = { 0, 7, 7, 64 } },                                                        \
		{ "one pixel", .build = (b), .size = { 2, 1, 1, 16 } },                                                \
		{ "7x7", .build = (b), .size = { 5, 7, 7, 64 } },                                                      \
		{ "odd channels", .build = (b), .size = { 3, 5, 9, 29 } },                                             \
		{ "8x8, 2048 channels", .build = (b), .size = { 2, 8, 8, 2048 } },                                     \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_avgpool[] = { SHAPES(build_avgpool_case) };
const struct op_case cases_avgpool_grad[] = { SHAPES(build_avgpool_grad_case) };
