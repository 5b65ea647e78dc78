/* gelu_cases.c: test cases of gelu and gelu_grad. */
#include <math.h>

#include "trainer/ops/cases.h"
#include "trainer/ops/gelu/gelu.h"

#define GELU_ROUNDINGS 24 /* polynomial, exponential and division, each good to some units in the last place */

static struct node *build(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){
				     .op = &op_gelu, NODE_IN(case_input(g, "x", DTYPE_F32, shape)), NODE_OUT(NULL) });
}

static struct node *build_grad(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){ .op = &op_gelu_grad,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, shape),
							  case_input(g, "x", DTYPE_F32, shape)) });
}

/* From deep in the flat part to deep in the linear one, where an exponential overflows. */
static void wide(const struct op_case *c, struct case_values *v)
{
	double *x = v->node->op == &op_gelu ? v->in[0] : v->in[1];
	int64_t n = c->size[0] * c->size[1];

	for (int64_t i = 0; i < n; i++)
		x[i] = 60 * ((double)i / (double)n - 0.5);
}

static double bound(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->out[0]); i++)
		terms[i] = fabs(v->in[0][i]);
	return GELU_ROUNDINGS;
}

/* Both summands of the derivative stay below 1 + |x|. */
static double bound_grad(const struct case_values *v, int k, double *terms)
{
	(void)k;
	for (int64_t i = 0; i < case_count(v->node->out[0]); i++)
		terms[i] = fabs(v->in[0][i]) * (1 + fabs(v->in[1][i]));
	return GELU_ROUNDINGS;
}

const struct op_case cases_gelu[] = {
	{ "no elements", .build = build, .bound = bound, .size = { 0, 3 } },
	{ "odd length", .build = build, .bound = bound, .size = { 5, 37 } },
	{ "wide range", .build = build, .fill = wide, .bound = bound, .size = { 61, 17 } },
	{ "long", .build = build, .bound = bound, .size = { 130, 513 } },
	{ NULL },
};

const struct op_case cases_gelu_grad[] = {
	{ "no elements", .build = build_grad, .bound = bound_grad, .size = { 0, 3 } },
	{ "odd length", .build = build_grad, .bound = bound_grad, .size = { 5, 37 } },
	{ "wide range", .build = build_grad, .fill = wide, .bound = bound_grad, .size = { 61, 17 } },
	{ "long", .build = build_grad, .bound = bound_grad, .size = { 130, 513 } },
	{ NULL },
};
