/* SPDX-License-Identifier: Apache-2.0 */
/* update_cases.c: test cases of update, by rule. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/update/update.h"

static const struct optimizer_attr *options_of(const struct node *n)
{
	return &((const struct update_attr *)n->attr)->o;
}

static bool is_coupled(const struct node *n)
{
	return ((const struct update_attr *)n->attr)->rule == UPDATE_adam;
}

/* ---- sgd ---- */

/* size: elements, percent of momentum, ppm of weight decay, nesterov, skipped. */
static struct node *build_sgd_case(struct graph *g, const struct op_case *c)
{
	struct update_attr attr = { UPDATE_sgd, { .momentum = (double)c->size[1] / 100,
						  .weight_decay = (double)c->size[2] / 1e6,
						  .nesterov = c->size[3] } };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = c->size[1] ? case_input(g, "m", DTYPE_F32, shape) : NULL;
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g,
			  &(struct node_spec){ .op = &op_update, NODE_IN(p, grad, m, step), NODE_OUT(p, m),
					       NODE_ATTR(attr) });
}

static void fill_sgd_case(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[3], c->size[4] ? 0 : 3);
}

static double bound_sgd_error(const struct case_values *v, int k, double *terms)
{
	const struct optimizer_attr *a = options_of(v->node);
	double scale = v->in[3][STEP_GUARD_FACTOR];

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = fabs(v->in[1][i]) * scale + a->weight_decay * p;
		double m = v->in[2] ? a->momentum * fabs(v->in[2][i]) + d : d;

		terms[i] = k == 1 ? m : p + v->page->lr * (a->nesterov ? d + a->momentum * m : m);
	}
	return 4;
}

/* ---- adamw ---- */

/* size: elements, ppm of weight decay, coupled, updates including this one (0: skipped). */
static struct node *build_adamw_case(struct graph *g, const struct op_case *c)
{
	struct update_attr attr = { c->size[2] ? UPDATE_adam : UPDATE_adamw,
				    { .beta1 = 0.9,
				      .beta2 = 0.999,
				      .eps = 1e-3, /* large enough to matter */
				      .weight_decay = (double)c->size[1] / 1e6 } };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = case_input(g, "m", DTYPE_F32, shape), *v = case_input(g, "v", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g, &(struct node_spec){ .op = &op_update,
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
	const struct optimizer_attr *a = options_of(v->node);
	double factor = v->in[4][STEP_GUARD_FACTOR], t = v->in[4][STEP_GUARD_UPDATES], lr = v->page->lr;

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]);
		double d = fabs(v->in[1][i]) * factor + (is_coupled(v->node) ? a->weight_decay * p : 0);
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

/* ---- lars ---- */

/* size: elements, percent of momentum, ppm of weight decay, norms (0 absent, 1 present, 2 zero), skipped. */
static struct node *build_lars_case(struct graph *g, const struct op_case *c)
{
	struct update_attr attr = { UPDATE_lars, { .momentum = (double)c->size[1] / 100,
						   .weight_decay = (double)c->size[2] / 1e6,
						   .trust = 0.5 } };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = c->size[1] ? case_input(g, "m", DTYPE_F32, shape) : NULL;
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));
	struct tensor *psum = c->size[3] ? case_input(g, "psum", DTYPE_F64, SHAPE(1)) : NULL;
	struct tensor *gsum = c->size[3] ? case_input(g, "gsum", DTYPE_F64, SHAPE(1)) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_update,
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
	const struct optimizer_attr *a = options_of(v->node);
	const double *const sums[] = { v->in[4], v->in[5] };
	double factor = v->in[3][STEP_GUARD_FACTOR];
	double rate = v->page->lr * update_ratio(v->node->attr, sums, factor);

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = rate * (fabs(v->in[1][i]) * factor + a->weight_decay * p);

		d += v->in[2] ? a->momentum * fabs(v->in[2][i]) : 0;
		terms[i] = k == 1 ? d : p + d;
	}
	return 5;
}

/* ---- lamb ---- */

/* size: elements, ppm of weight decay, updates including this one (0: skipped). */
static struct node *build_lamb_step_case(struct graph *g, const struct op_case *c)
{
	struct update_attr attr = { UPDATE_lamb_step, { .beta1 = 0.9,
							.beta2 = 0.999,
							.eps = 1e-3,
							.weight_decay = (double)c->size[1] / 1e6 } };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = case_input(g, "m", DTYPE_F32, shape), *v = case_input(g, "v", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));

	return graph_node(g, &(struct node_spec){ .op = &op_update,
						  NODE_IN(p, grad, m, v, step),
						  NODE_OUT(NULL, m, v),
						  NODE_ATTR(attr) });
}

static void fill_lamb_step(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0]; i++)
		v->in[3][i] *= v->in[3][i];
	case_step(v->in[4], (double)c->size[2]);
}

static double bound_lamb_step_error(const struct case_values *v, int k, double *terms)
{
	const struct optimizer_attr *a = options_of(v->node);
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
	struct update_attr attr = { .rule = UPDATE_lamb };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *u = case_input(g, "u", DTYPE_F32, shape);
	struct tensor *step = case_input(g, "step", DTYPE_F64, SHAPE(STEP_GUARD_STEP_VALUES));
	struct tensor *psum = c->size[1] ? case_input(g, "psum", DTYPE_F64, SHAPE(1)) : NULL;
	struct tensor *usum = c->size[1] ? case_input(g, "usum", DTYPE_F64, SHAPE(1)) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_update,
						  NODE_IN(p, u, step, psum, usum),
						  NODE_OUT(p),
						  NODE_ATTR(attr) });
}

static void fill_lamb(const struct op_case *c, struct case_values *v)
{
	case_step(v->in[2], c->size[2] ? 0 : 3);
	for (int k = 3; k < 5 && v->in[k]; k++)
		v->in[k][0] = c->size[1] == 2 ? 0 : 1 + v->in[k][0] * v->in[k][0];
}

static double bound_lamb_error(const struct case_values *v, int k, double *terms)
{
	const double *const sums[] = { v->in[3], v->in[4] };
	double rate = v->page->lr * update_ratio(v->node->attr, sums, 1);

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++)
		terms[i] = fabs(v->in[0][i]) + rate * fabs(v->in[1][i]);
	return 3;
}

const struct op_case cases_update[] = {
	{ "sgd, no elements", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 0, 90, 100, 0 } },
	{ "sgd, one element", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1, 90, 100, 0 } },
	{ "sgd, momentum and decay", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 90, 100000, 0 } },
	{ "sgd, Nesterov", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 90, 100000, 1 } },
	{ "sgd, no momentum", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 1037, 0, 100000, 0 } },
	{ "sgd, no decay", .build = build_sgd_case, .fill = fill_sgd_case, .bound = bound_sgd_error,
	  .size = { 70001, 90, 0, 0 } },
	{ "sgd, skipped", .build = build_sgd_case, .fill = fill_sgd_case, .exact = true,
	  .size = { 37, 90, 100000, 0, 1 } },
	{ "adamw, no elements", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 0, 100, 0, 3 } },
	{ "adamw, one element", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1, 100, 0, 1 } },
	{ "adamw, decoupled decay", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1037, 100000, 0, 3 } },
	{ "adam, coupled decay", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 1037, 100000, 1, 3 } },
	{ "adamw, late", .build = build_adamw_case, .fill = fill_adamw_case, .bound = bound_adamw_error,
	  .size = { 70001, 0, 0, 100000 } },
	{ "adamw, skipped", .build = build_adamw_case, .fill = fill_adamw_case, .exact = true,
	  .size = { 37, 100000, 0, 0 } },
	{ "lars, no elements", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 0, 90, 100, 1, 0 } },
	{ "lars, one element", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1, 90, 100, 1, 0 } },
	{ "lars, momentum and decay", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 100000, 1, 0 } },
	{ "lars, without norms", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 0, 0, 0 } },
	{ "lars, norms that are 0", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 1037, 90, 100000, 2, 0 } },
	{ "lars, no momentum", .build = build_lars_case, .fill = fill_lars_case, .bound = bound_lars_error,
	  .size = { 70001, 0, 100000, 1, 0 } },
	{ "lars, skipped", .build = build_lars_case, .fill = fill_lars_case, .exact = true,
	  .size = { 37, 90, 100000, 1, 1 } },
	{ "lamb_step, no elements", .build = build_lamb_step_case, .fill = fill_lamb_step,
	  .bound = bound_lamb_step_error, .size = { 0, 100, 3 } },
	{ "lamb_step, first step", .build = build_lamb_step_case, .fill = fill_lamb_step,
	  .bound = bound_lamb_step_error, .size = { 1037, 100000, 1 } },
	{ "lamb_step, decay", .build = build_lamb_step_case, .fill = fill_lamb_step, .bound = bound_lamb_step_error,
	  .size = { 70001, 100000, 30 } },
	{ "lamb_step, skipped", .build = build_lamb_step_case, .fill = fill_lamb_step, .exact = true,
	  .size = { 37, 100000, 0 } },
	{ "lamb, no elements", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 0, 1 } },
	{ "lamb, odd length", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 1037, 1 } },
	{ "lamb, without norms", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 1037, 0 } },
	{ "lamb, norms that are 0", .build = build_lamb_case, .fill = fill_lamb, .bound = bound_lamb_error,
	  .size = { 37, 2 } },
	{ "lamb, skipped", .build = build_lamb_case, .fill = fill_lamb, .exact = true, .size = { 37, 1, 1 } },
	{ NULL },
};
