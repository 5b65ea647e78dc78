/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_cases.c: test cases of gelu and gelu_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"

#define GELU_ROUNDINGS 24 /* polynomial, exponential and division, each accurate to a few units in the last place */

static struct node *build_gelu_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){
				     .op = &op_gelu, NODE_IN(case_input(g, "x", DTYPE_F32, shape)), NODE_OUT(NULL) });
}

static struct node *build_gelu_grad_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){ .op = &op_gelu_grad,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, shape),
							  case_input(g, "x", DTYPE_F32, shape)) });
}

/* From far in the flat part to far in the linear part, where an exponential overflows. */
static void fill_gelu_wide_range(const struct op_case *c, struct case_values *v)
{
	double *x = v->node->op == &op_gelu ? v->in[0] : v->in[1];
	int64_t n = c->size[0] * c->size[1];

	for (int64_t i = 0; i < n; i++)
		x[i] = 60 * ((double)i / (double)n - 0.5);
}

static double bound_gelu_error(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->out[0]); i++)
		terms[i] = fabs(v->in[0][i]);
	return GELU_ROUNDINGS;
}

/* Both summands of the derivative are below 1 + |x|. */
static double bound_gelu_grad_error(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->out[0]); i++)
		terms[i] = fabs(v->in[0][i]) * (1 + fabs(v->in[1][i]));
	return GELU_ROUNDINGS;
}

const struct op_case cases_gelu[] = {
	{ "no elements", .build = build_gelu_case, .bound = bound_gelu_error, .size = { 0, 3 } },
	{ "odd length", .build = build_gelu_case, .bound = bound_gelu_error, .size = { 5, 37 } },
	{ "wide range", .build = build_gelu_case, .fill = fill_gelu_wide_range, .bound = bound_gelu_error,
	  .size = { 61, 17 } },
	{ "long", .build = build_gelu_case, .bound = bound_gelu_error, .size = { 130, 513 } },
	{ NULL },
};

const struct op_case cases_gelu_grad[] = {
	{ "no elements", .build = build_gelu_grad_case, .bound = bound_gelu_grad_error, .size = { 0, 3 } },
	{ "odd length", .build = build_gelu_grad_case, .bound = bound_gelu_grad_error, .size = { 5, 37 } },
	{ "wide range", .build = build_gelu_grad_case, .fill = fill_gelu_wide_range, .bound = bound_gelu_grad_error,
	  .size = { 61, 17 } },
	{ "long", .build = build_gelu_grad_case, .bound = bound_gelu_grad_error, .size = { 130, 513 } },
	{ NULL },
};
