/* linear_cases.c: test cases of linear, linear_dgrad and linear_wgrad. */
#include "trainer/ops/cases.h"
#include "trainer/ops/linear/linear.h"

enum { N, C, K, LOW, PLAIN }; /* PLAIN: without a bias */

static struct node *build(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct linear_attr attr = { .low = s[LOW] };
	struct tensor *b = s[PLAIN] ? NULL : case_input(g, "b", DTYPE_F32, SHAPE(s[K]));

	return graph_node(g, &(struct node_spec){ .op = &op_linear,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[N], s[C])),
							  case_input(g, "w", DTYPE_F32, SHAPE(s[K], s[C])), b) });
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
	struct tensor *db = s[PLAIN] ? NULL : case_input(g, "db", DTYPE_F32, SHAPE(s[K]));

	return graph_node(g, &(struct node_spec){ .op = &op_linear_wgrad,
						  NODE_OUT(NULL, db),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[N], s[C])),
							  case_input(g, "dy", DTYPE_F32, SHAPE(s[N], s[K]))) });
}

#define LAYERS(b)                                                                                                      \
	{ "no samples", .build = (b), .size = { 0, 64, 10 } }, { "one sample", .build = (b), .size = { 1, 64, 10 } },  \
		{ "ten classes", .build = (b), .size = { 37, 64, 10 } },                                               \
		{ "a word", .build = (b), .size = { 1, 192, 37, 1 } },                                                 \
		{ "two words", .build = (b), .size = { 2, 32, 5, 1 } },                                                \
		{ "three samples", .build = (b), .size = { 3, 160, 50 } },                                             \
		{ "four words, no bias", .build = (b), .size = { 4, 64, 33, 1, 1 } },                                  \
		{ "odd sizes", .build = (b), .size = { 13, 51, 7 } },                                                  \
		{ "thousand classes", .build = (b), .size = { 16, 512, 1000 } },                                       \
		{ "between layers", .build = (b), .size = { 66, 96, 130, 1 } },                                        \
		{ "between layers, no bias", .build = (b), .size = { 65, 33, 48, 1, 1 } },                             \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_linear[] = { LAYERS(build) };
const struct op_case cases_linear_dgrad[] = { LAYERS(build_dgrad) };
const struct op_case cases_linear_wgrad[] = { LAYERS(build_wgrad) };
