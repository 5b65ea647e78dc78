/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate_cases.c: test cases of accumulate. The harness's page has a micro-batch after the first. */
#include "tests/ops/cases/cases.h"

/* size: elements, f64 instead of f32. */
static struct node *build_accumulate_case(struct graph *g, const struct op_case *c)
{
	enum dtype type = c->size[1] ? DTYPE_F64 : DTYPE_F32;
	struct tensor *s = case_input(g, "s", type, SHAPE(c->size[0])),
		      *x = case_input(g, "x", type, SHAPE(c->size[0]));

	return graph_node(g, &(struct node_spec){ .op = &op_accumulate, NODE_IN(s, x), NODE_OUT(s) });
}

const struct op_case cases_accumulate[] = {
	{ "no elements", .build = build_accumulate_case, .size = { 0, 0 } },
	{ "one element", .build = build_accumulate_case, .size = { 1, 0 } },
	{ "odd length", .build = build_accumulate_case, .size = { 1037, 0 } },
	{ "long", .build = build_accumulate_case, .size = { 70001, 0 } },
	{ "results", .build = build_accumulate_case, .size = { 5, 1 } },
	{ NULL },
};
