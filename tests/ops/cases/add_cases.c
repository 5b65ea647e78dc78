/* SPDX-License-Identifier: Apache-2.0 */
/* add_cases.c: test cases of add. */
#include "tests/ops/cases/cases.h"

static struct node *build_add_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){ .op = &op_add,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "a", DTYPE_F32, shape),
							  case_input(g, "b", DTYPE_F32, shape)) });
}

const struct op_case cases_add[] = {
	{ "no elements", .build = build_add_case, .size = { 0, 5 } },
	{ "one element", .build = build_add_case, .size = { 1, 1 } },
	{ "odd length", .build = build_add_case, .size = { 7, 13 } },
	{ "long", .build = build_add_case, .size = { 129, 521 } },
	{ NULL },
};
