/* linear_cases.c: test cases of linear, linear_dgrad and linear_wgrad. */
#include "trainer/ops/cases.h"
#include "trainer/ops/linear/linear.h"

enum { N, C, K };

static struct node *build(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;

	return graph_node(g, &(struct node_spec){ .op = &op_linear,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[N], s[C])),
							  case_input(g, "w", DTYPE_F32, SHAPE(s[K], s[C])),
							  case_input(g, "b", DTYPE_F32, SHAPE(s[K]))) });
}

static struct node *build_dgrad(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;

	return graph_node(g, &(struct node_spec){ .op = &op_linear_dgrad,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, SHAPE(s[N], s[K])),
							  case_input(g, "w", DTYPE_F32, SHAPE(s[K], s[C]))) });
}

static struct node *build_wgrad(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;

	return graph_node(g, &(struct node_spec){ .op = &op_linear_wgrad,
						  NODE_OUT(NULL, NULL),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[N], s[C])),
							  case_input(g, "dy", DTYPE_F32, SHAPE(s[N], s[K]))) });
}

#define LAYERS(b)                                                                                                      \
	{ "no samples", .build = (b), .size = { 0, 64, 10 } }, { "one sample", .build = (b), .size = { 1, 64, 10 } },  \
		{ "ten classes", .build = (b), .size = { 37, 64, 10 } },                                               \
		{ "odd sizes", .build = (b), .size = { 13, 51, 7 } },                                                  \
		{ "thousand classes", .build = (b), .size = { 16, 512, 1000 } },                                       \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_linear[] = { LAYERS(build) };
const struct op_case cases_linear_dgrad[] = { LAYERS(build_dgrad) };
const struct op_case cases_linear_wgrad[] = { LAYERS(build_wgrad) };
