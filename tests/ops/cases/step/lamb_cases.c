/* SPDX-License-Identifier: Apache-2.0 */
/* lamb_cases.c: test cases of lamb_update and lamb. */

#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lamb/lamb.h"

/* size: elements, ppm of weight decay, updates including this one (0: skipped). */
static struct node *build_lamb_update_case(struct graph *g, const struct op_case *c)
{
	struct lamb_attr attr = { .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3, .weight_decay = (double)c->size[1] / 1e6 };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = case_input(g, "m", DTYPE_F32, shape), *v = case_input(g, "v", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g, &(struct node_spec){ .op = &op_lamb_update,
						  NODE_IN(p, grad, m, v, step),
						  NODE_OUT(NULL, m, v),
						  NODE_ATTR(attr) });
}

static void fill_lamb_update(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0]; i++)
		v->in[3][i] *= v->in[3][i];
	case_step(v->in[4], (double)c->size[2]);
}

static double bound_lamb_update_error(const struct case_values *v, int k, double *terms)
{
	const struct lamb_attr *a = v->node->attr;
	double factor = v->in[4][STEP_GUARD_FACTOR], t = v->in[4][STEP_GUARD_UPDATES];

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double d = fabs(v->in[1][i]) * factor, m = a->beta1 * fabs(v->in[2][i]) + (1 - a->beta1) * d;
		double square = a->beta2 * v->in[3][i] + (1 - a->beta2) * d * d;
		double root = sqrt(square / (1 - pow(a->beta2, t)));

		terms[i] = k == 1 ? m
			   : k == 2
				   ? square
				   : m / (1 - pow(a->beta1, t)) / (root + a->eps) + a->weight_decay * fabs(v->in[0][i]);
	}
	return 8;
}

/* size: elements, norms (0 absent, 1 present, 2 zero), skipped. */
static struct node *build_lamb_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *u = case_input(g, "u", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));
	struct tensor *psum = c->size[1] ? case_input(g, "psum", DTYPE_F64, SHAPE(1)) : NULL;
	struct tensor *usum = c->size[1] ? case_input(g, "usum", DTYPE_F64, SHAPE(1)) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_lamb, NODE_IN(p, u, step, psum, usum), NODE_OUT(p) });
}

static void fill_lamb(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[2], c->size[2] ? 0 : 3);
	for (int k = 3; k < 5 && v->in[k]; k++)
		v->in[k][0] = c->size[1] == 2 ? 0 : 1 + v->in[k][0] * v->in[k][0];
}

static double bound_lamb_error(const struct case_values *v, int k, double *terms)
{
	double rate = v->page->lr * lamb_ratio(v->in[3], v->in[4]);

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++)
		terms[i] = fabs(v->in[0][i]) + rate * fabs(v->in[1][i]);
	return 3;
}

const struct op_case cases_lamb_update[] = {
	{ "no elements", .build = build_lamb_update_case, .fill = fill_lamb_update, .bound = bound_lamb_update_error,
	  .size = { 0, 100, 3 } },
	{ "first step", .build = build_lamb_update_case, .fill = fill_lamb_update, .bound = bound_lamb_update_error,
	  .size = { 1037, 100000, 1 } },
	{ "decay", .build = build_lamb_update_case, .fill = fill_lamb_update, .bound = bound_lamb_update_error,
	  .size = { 70001, 100000, 30 } },
	{ "skipped", .build = build_lamb_update_case, .fill = fill_lamb_update, .exact = true,
	  .size = { 37, 100000, 0 } },
	{ NULL },
};

const struct op_case cases_lamb[] = {
	{ "no elements", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error, .size = { 0, 1 } },
	{ "odd length", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error, .size = { 1037, 1 } },
	{ "without norms", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 1037, 0 } },
	{ "norms that are 0", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 37, 2 } },
	{ "skipped", .build = build_lamb_case, .fill = fill_lamb, .exact = true, .size = { 37, 1, 1 } },
	{ NULL },
};
