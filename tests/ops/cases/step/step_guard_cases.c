/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_cases.c: test cases of guard. tests/ops/values_test.c checks its decisions against values computed by
 * hand. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"

enum { PLAIN, NAN_NORM, INFINITE_LOSS, BLANK };

/* size: max_norm in percent, scaling, kind of failure, clean steps before, whether there are votes. */
static struct node *build_guard_case(struct graph *g, const struct op_case *c)
{
	struct step_guard_attr attr = { .max_norm = (double)c->size[0] / 100, .scaling = c->size[1] };
	struct tensor *norm = case_input(g, "norm", DTYPE_F64, SHAPE(1)),
		      *losses = case_input(g, "losses", DTYPE_F64, SHAPE(4)),
		      *votes = c->size[4] ? case_input(g, "votes", DTYPE_F64, SHAPE(1)) : NULL;
	struct tensor *step = step_guard_add(g, &(struct step_guard_in){ norm, losses, votes }, &attr);

	return step ? step->producer : NULL;
}

static void fill_guard_case(const struct op_case *c, struct case_values *v)
{
	static const double state[STEP_GUARD_STATE_VALUES] = { 7, 2, 1, 1024, 0 };

	v->in[0][0] = c->size[2] == NAN_NORM ? NAN : fabs(v->in[0][0]);
	if (c->size[2] == INFINITE_LOSS)
		v->in[1][0] = INFINITY;
	for (int i = 0; i < STEP_GUARD_STATE_VALUES; i++)
		v->in[2][i] = state[i];
	v->in[2][STEP_GUARD_STATE_CLEAN] = (double)c->size[3];
	if (c->size[4])
		v->in[3][0] = c->size[2] == BLANK ? STEP_GUARD_BLANK + 1 : 2;
}

const struct op_case cases_step_guard[] = {
	{ "no clipping", .build = build_guard_case, .fill = fill_guard_case, .exact = true, .size = { 0, 0, PLAIN } },
	{ "clipped", .build = build_guard_case, .fill = fill_guard_case, .exact = true, .size = { 1, 0, PLAIN } },
	{ "below the largest norm", .build = build_guard_case, .fill = fill_guard_case, .exact = true,
	  .size = { 100000, 0, PLAIN } },
	{ "norm that is no number", .build = build_guard_case, .fill = fill_guard_case, .exact = true,
	  .size = { 100, 0, NAN_NORM } },
	{ "infinite loss", .build = build_guard_case, .fill = fill_guard_case, .exact = true,
	  .size = { 0, 1, INFINITE_LOSS, 5 } },
	{ "scale grows", .build = build_guard_case, .fill = fill_guard_case, .exact = true,
	  .size = { 0, 1, PLAIN, STEP_GUARD_SCALE_EVERY - 1 } },
	{ "votes", .build = build_guard_case, .fill = fill_guard_case, .exact = true, .size = { 1, 1, PLAIN, 5, 1 } },
	{ "no data", .build = build_guard_case, .fill = fill_guard_case, .exact = true, .size = { 1, 1, BLANK, 5, 1 } },
	{ NULL },
};
