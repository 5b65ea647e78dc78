/* SPDX-License-Identifier: Apache-2.0 */
/* sgd_cases.c: test cases of sgd. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/sgd/sgd.h"

/* size: elements, percent of momentum, ppm of weight decay, nesterov, skipped. */
static struct node *build_sgd_case(struct graph *g, const struct op_case *c)
{
	struct sgd_attr attr = { .momentum = (double)c->size[1] / 100,
				 .weight_decay = (double)c->size[2] / 1e6,
				 .nesterov = c->size[3] };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = c->size[1] ? case_input(g, "m", DTYPE_F32, shape) : NULL;
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g,
			  &(struct node_spec){ .op = &op_sgd, NODE_IN(p, grad, m, step), NODE_OUT(p, m),
					       NODE_ATTR(attr) });
}

static void fill_sgd_case(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[3], c->size[4] ? 0 : 3);
}

static double bound_sgd_error(const struct case_values *v, int k, double *terms)
{
	const struct sgd_attr *a = v->node->attr;
	double scale = v->in[3][STEP_GUARD_FACTOR];

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = fabs(v->in[1][i]) * scale + a->weight_decay * p;
		double m = v->in[2] ? a->momentum * fabs(v->in[2][i]) + d : d;

		terms[i] = k == 1 ? m : p + v->page->lr * (a->nesterov ? d + a->momentum * m : m);
	}
	return 4;
}

const struct op_case cases_sgd[] = {
	{ "no elements", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 0, 90, 100, 0 } },
	{ "one element", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1, 90, 100, 0 } },
	{ "momentum and decay", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 90, 100000, 0 } },
	{ "Nesterov", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 90, 100000, 1 } },
	{ "no momentum", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 0, 100000, 0 } },
	{ "no decay", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 70001, 90, 0, 0 } },
	{ "skipped", .build = build_sgd_case, .fill = fill_sgd_case, .exact = true, .size = { 37, 90, 100000, 0, 1 } },
	{ NULL },
};
