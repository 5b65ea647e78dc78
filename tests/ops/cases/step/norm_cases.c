/* SPDX-License-Identifier: Apache-2.0 */
/* norm_cases.c: test cases of sumsq and norm. */

#include "tests/ops/cases/cases.h"
#include "trainer/ops/norm/exact.h"
#include "trainer/ops/norm/norm.h"

static struct node *build_sumsq_case(struct graph *g, const struct op_case *c)
{
	return graph_node(g, &(struct node_spec){ .op = &op_sumsq,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "g", DTYPE_F32, SHAPE(c->size[0]))) });
}

static struct node *build_squares_case(struct graph *g, const struct op_case *c)
{
	return graph_node(g, &(struct node_spec){ .op = &op_squares,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "g", DTYPE_F32, SHAPE(c->size[0]))) });
}

static struct node *build_exact_case(struct graph *g, const struct op_case *c)
{
	return graph_node(g, &(struct node_spec){ .op = &op_exact,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "terms", DTYPE_F64, SHAPE(c->size[0]))) });
}

/* Terms of all magnitudes of a double. */
static void fill_norm_wide_terms(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0]; i++)
		v->in[0][i] = ldexp(v->in[0][i] * v->in[0][i], (int)(i * 331 % 1800) - 900);
}

static struct node *build_norm_case(struct graph *g, const struct op_case *c)
{
	struct tensor *sums[CASE_OPERANDS_MAX];
	struct node_spec spec = { .op = &op_norm, .in = sums, .n_in = (int)c->size[0], NODE_OUT(NULL) };

	for (int i = 0; i < spec.n_in; i++)
		sums[i] = case_input(g, graph_printf(g, "sum%d", i), DTYPE_F64, SHAPE(1));
	return graph_node(g, &spec);
}

static struct node *build_exact_norm_case(struct graph *g, const struct op_case *c)
{
	struct tensor *sums[CASE_OPERANDS_MAX];
	struct node_spec spec = { .op = &op_norm, .in = sums, .n_in = (int)c->size[0], NODE_OUT(NULL) };

	for (int i = 0; i < spec.n_in; i++)
		sums[i] = case_input(g, graph_printf(g, "sum%d", i), DTYPE_I64, SHAPE(EXACT_WORDS));
	return graph_node(g, &spec);
}

/* Words of exact sums, with thousands in each. */
static void fill_exact_words(const struct op_case *c, struct case_values *v)
{
	for (int i = 0; i < c->size[0]; i++)
		for (int k = 0; k < EXACT_WORDS; k++)
			v->in[i][k] = k / 4 == EXACT_WORDS / 8 ? floor(fabs(v->in[i][k]) * 1000) : 0;
}

static void fill_norm_square_terms(const struct op_case *c, struct case_values *v)
{
	for (int i = 0; i < c->size[0]; i++)
		v->in[i][0] = v->in[i][0] * v->in[i][0];
}

static double bound_norm_error(const struct case_values *v, int k, double *terms)
{
	terms[0] = v->out[k][0];
	return 4;
}

const struct op_case cases_sumsq[] = {
	{ "no elements", .build = build_sumsq_case, .size = { 0 } },
	{ "one element", .build = build_sumsq_case, .size = { 1 } },
	{ "odd length", .build = build_sumsq_case, .size = { 1037 } },
	{ "long", .build = build_sumsq_case, .size = { 200001 } },
	{ NULL },
};

static struct node *build_norm_sum_case(struct graph *g, const struct op_case *c)
{
	const struct norm_attr attr = { .sum = true };
	struct node *n = build_norm_case(g, c);

	if (n)
		n->attr = arena_alloc(g->arena, sizeof(attr));
	if (n && n->attr)
		*(struct norm_attr *)n->attr = attr;
	return n;
}

const struct op_case cases_squares[] = {
	{ "no elements", .build = build_squares_case, .size = { 0 } },
	{ "one element", .build = build_squares_case, .size = { 1 } },
	{ "odd length", .build = build_squares_case, .size = { 1037 } },
	{ "long", .build = build_squares_case, .size = { 200001 } },
	{ NULL },
};

const struct op_case cases_exact[] = {
	{ "no terms", .build = build_exact_case, .exact = true, .size = { 0 } },
	{ "one term", .build = build_exact_case, .fill = fill_norm_wide_terms, .exact = true, .size = { 1 } },
	{ "many sizes", .build = build_exact_case, .fill = fill_norm_wide_terms, .exact = true, .size = { 501 } },
	{ NULL },
};

const struct op_case cases_norm[] = {
	{ "without root", .build = build_norm_sum_case, .fill = fill_norm_square_terms, .bound = bound_norm_error,
	  .size = { 5 } },
	{ "one term", .build = build_norm_case, .fill = fill_norm_square_terms, .bound = bound_norm_error,
	  .size = { 1 } },
	{ "eight terms", .build = build_norm_case, .fill = fill_norm_square_terms, .bound = bound_norm_error,
	  .size = { 8 } },
	{ "exact terms", .build = build_exact_norm_case, .fill = fill_exact_words, .bound = bound_norm_error,
	  .size = { 3 } },
	{ NULL },
};
