/* SPDX-License-Identifier: Apache-2.0 */
/* lars_cases.c: test cases of lars. */

#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lars/lars.h"

/* size: elements, percent of momentum, ppm of weight decay, norms (0 absent, 1 present, 2 zero), skipped. */
static struct node *build_lars_case(struct graph *g, const struct op_case *c)
{
	struct lars_attr attr = { .momentum = (double)c->size[1] / 100,
				  .weight_decay = (double)c->size[2] / 1e6,
				  .trust = 0.5 };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = c->size[1] ? case_input(g, "m", DTYPE_F32, shape) : NULL;
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));
	struct tensor *psum = c->size[3] ? case_input(g, "psum", DTYPE_F64, SHAPE(1)) : NULL;
	struct tensor *gsum = c->size[3] ? case_input(g, "gsum", DTYPE_F64, SHAPE(1)) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_lars,
						  NODE_IN(p, grad, m, step, psum, gsum),
						  NODE_OUT(p, m),
						  NODE_ATTR(attr) });
}

static void fill_lars_case(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[3], c->size[4] ? 0 : 3);
	for (int k = 4; k < 6 && v->in[k]; k++)
		v->in[k][0] = c->size[3] == 2 ? 0 : 1 + v->in[k][0] * v->in[k][0];
}

static double bound_lars_error(const struct case_values *v, int k, double *terms)
{
	const struct lars_attr *a = v->node->attr;
	double factor = v->in[3][STEP_GUARD_FACTOR], rate = v->page->lr * lars_ratio(a, v->in[4], v->in[5], factor);

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = rate * (fabs(v->in[1][i]) * factor + a->weight_decay * p);

		d += v->in[2] ? a->momentum * fabs(v->in[2][i]) : 0;
		terms[i] = k == 1 ? d : p + d;
	}
	return 5;
}

const struct op_case cases_lars[] = {
	{ "no elements", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 0, 90, 100, 1, 0 } },
	{ "one element", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1, 90, 100, 1, 0 } },
	{ "momentum and decay", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 100000, 1, 0 } },
	{ "without norms", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 0, 0, 0 } },
	{ "norms that are 0", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 100000, 2, 0 } },
	{ "no momentum", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 70001, 0, 100000, 1, 0 } },
	{ "skipped", .build = build_lars_case, .fill = fill_lars_case, .exact = true,
	  .size = { 37, 90, 100000, 1, 1 } },
	{ NULL },
};
