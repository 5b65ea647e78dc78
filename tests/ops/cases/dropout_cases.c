/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_cases.c: test cases of dropout. All backends draw the same mask, so results differ by one rounding. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/dropout/dropout.h"

enum { R, C, PERCENT, PER_SAMPLE };

static struct node *build_dropout_case(struct graph *g, const struct op_case *c)
{
	struct dropout_attr attr = { .p = (double)c->size[PERCENT] / 100,
				     .stream = rng_stream("case"),
				     .per_sample = c->size[PER_SAMPLE] };

	return graph_node(g,
			  &(struct node_spec){ .op = &op_dropout,
					       NODE_OUT(NULL),
					       NODE_ATTR(attr),
					       NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(c->size[R], c->size[C]))) });
}

const struct op_case cases_dropout[] = {
	{ "no rows", .build = build_dropout_case, .size = { 0, 8, 10, 8 } },
	{ "nothing dropped", .build = build_dropout_case, .size = { 3, 5, 0, 15 } },
	{ "samples of odd length", .build = build_dropout_case, .size = { 7, 37, 10, 259 } },
	{ "most dropped", .build = build_dropout_case, .size = { 64, 129, 90, 129 } },
	{ NULL },
};
