/* SPDX-License-Identifier: Apache-2.0 */
/* ema_cases.c: test cases of ema. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/ema/ema.h"

/* size: elements, updates including this one, skipped, steps from one update to the next. The harness has step 10 of an
 * epoch. */
static struct node *build_ema_case(struct graph *g, const struct op_case *c)
{
	struct ema_attr attr = { .decay = 0.75, .every = c->size[3] };
	struct tensor *x = case_input(g, "x", DTYPE_F32, SHAPE(c->size[0]));
	struct tensor *ema = case_input(g, "ema", DTYPE_F32, SHAPE(c->size[0]));
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g,
			  &(struct node_spec){ .op = &op_ema, NODE_IN(x, ema, step), NODE_OUT(ema), NODE_ATTR(attr) });
}

static void fill_ema_case(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[2], (double)c->size[1]);
	v->in[2][STEP_GUARD_SKIP] = (double)c->size[2];
}

static double bound_ema_error(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++)
		terms[i] = fabs(v->in[0][i]) + fabs(v->in[1][i]);
	return 3;
}

const struct op_case cases_ema[] = {
	{ "no elements", .build = build_ema_case, .fill = fill_ema_case, .bound = bound_ema_error,
	  .size = { 0, 3, 0 } },
	{ "odd length", .build = build_ema_case, .fill = fill_ema_case, .bound = bound_ema_error,
	  .size = { 1037, 3, 0 } },
	{ "first update", .build = build_ema_case, .fill = fill_ema_case, .exact = true, .size = { 1037, 1, 0 } },
	{ "skipped", .build = build_ema_case, .fill = fill_ema_case, .exact = true, .size = { 37, 3, 1 } },
	{ "skipped before the first update", .build = build_ema_case, .fill = fill_ema_case, .exact = true,
	  .size = { 37, 0, 1 } },
	{ "due in every fifth step", .build = build_ema_case, .fill = fill_ema_case, .bound = bound_ema_error,
	  .size = { 1037, 3, 0, 5 } },
	{ "not due", .build = build_ema_case, .fill = fill_ema_case, .exact = true, .size = { 1037, 3, 0, 4 } },
	{ "first update, not due", .build = build_ema_case, .fill = fill_ema_case, .exact = true,
	  .size = { 37, 1, 0, 4 } },
	{ NULL },
};
