/* SPDX-License-Identifier: Apache-2.0 */
/* scale_cases.c: test cases of scale. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/scale/scale.h"

static struct node *build_scale_case(struct graph *g, const struct op_case *c)
{
	const struct scale_attr attr = { 0.7 };

	return graph_node(g, &(struct node_spec){ .op = &op_scale,
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(c->size[0], c->size[1]))),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
}

const struct op_case cases_scale[] = {
	{ "no elements", .build = build_scale_case, .size = { 0, 3 } },
	{ "odd length", .build = build_scale_case, .size = { 5, 37 } },
	{ "long", .build = build_scale_case, .size = { 130, 513 } },
	{ NULL },
};
