/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_cases.c: test cases of adamw. */
#include <math.h>

#include "trainer/ops/adamw/adamw.h"
#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"

/* size: elements, ppm of weight decay, coupled, updates including this one (0: skipped). */
static struct node *build_adamw_case(struct graph *g, const struct op_case *c)
{
	struct adamw_attr attr = { .beta1 = 0.9,
				   .beta2 = 0.999,
				   .eps = 1e-3, /* large enough to matter */
				   .weight_decay = (double)c->size[1] / 1e6,
				   .coupled = c->size[2] };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = case_input(g, "m", DTYPE_F32, shape), *v = case_input(g, "v", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g, &(struct node_spec){ .op = &op_adamw,
						  NODE_IN(p, grad, m, v, step),
						  NODE_OUT(p, m, v),
						  NODE_ATTR(attr) });
}

static void fill_adamw_case(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0]; i++)
		v->in[3][i] *= v->in[3][i];
	case_step(v->in[4], (double)c->size[3]);
}

static double bound_adamw_error(const struct case_values *v, int k, double *terms)
{
	const struct adamw_attr *a = v->node->attr;
	double factor = v->in[4][STEP_GUARD_FACTOR], t = v->in[4][STEP_GUARD_UPDATES], lr = v->page->lr;

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = fabs(v->in[1][i]) * factor + (a->coupled ? a->weight_decay * p : 0);
		double m = a->beta1 * fabs(v->in[2][i]) + 2 * (1 - a->beta1) * d;
		double root = sqrt(v->out[2][i]) / sqrt(1 - pow(a->beta2, t));
		double most = a->beta2 * v->in[3][i] + (1 - a->beta2) * d * d;

		/* A sum with cancellation (coupled decay) has a root whose error exceeds its own roundings. */
		most = v->out[2][i] > 0 ? most / v->out[2][i] : 1;
		terms[i] = k == 1   ? m
			   : k == 2 ? a->beta2 * v->in[3][i] + (1 - a->beta2) * d * d
				    : p * (1 + lr * a->weight_decay) +
					      lr / (1 - pow(a->beta1, t)) * m / (root + a->eps) * most;
	}
	return 8;
}

const struct op_case cases_adamw[] = {
	{ "no elements", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 0, 100, 0, 3 } },
	{ "one element", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1, 100, 0, 1 } },
	{ "decoupled decay", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1037, 100000, 0, 3 } },
	{ "coupled decay", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1037, 100000, 1, 3 } },
	{ "late", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 70001, 0, 0, 100000 } },
	{ "skipped", .build = build_adamw_case, .fill = fill_adamw_case, .exact = true, .size = { 37, 100000, 0, 0 } },
	{ NULL },
};
