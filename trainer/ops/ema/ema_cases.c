/* ema_cases.c: test cases of ema. */
#include <math.h>

#include "trainer/ops/cases.h"
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/step_guard/step_guard.h"

/* size: elements, updates so far with this one, skipped. */
static struct node *build(struct graph *g, const struct op_case *c)
{
	struct ema_attr attr = { .decay = 0.75 };
	struct tensor *x = case_input(g, "x", DTYPE_F32, SHAPE(c->size[0]));
	struct tensor *ema = case_input(g, "ema", DTYPE_F32, SHAPE(c->size[0]));
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g,
			  &(struct node_spec){ .op = &op_ema, NODE_IN(x, ema, step), NODE_OUT(ema), NODE_ATTR(attr) });
}

static void fill(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[2], (double)c->size[1]);
	v->in[2][STEP_GUARD_SKIP] = (double)c->size[2];
}

static double bound(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++)
		terms[i] = fabs(v->in[0][i]) + fabs(v->in[1][i]);
	return 3;
}

const struct op_case cases_ema[] = {
	{ "no elements", .build = build, .fill = fill, .bound = bound, .size = { 0, 3, 0 } },
	{ "odd length", .build = build, .fill = fill, .bound = bound, .size = { 1037, 3, 0 } },
	{ "first update", .build = build, .fill = fill, .exact = true, .size = { 1037, 1, 0 } },
	{ "skipped", .build = build, .fill = fill, .exact = true, .size = { 37, 3, 1 } },
	{ "skipped before the first update", .build = build, .fill = fill, .exact = true, .size = { 37, 0, 1 } },
	{ NULL },
};
