/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cases.c: test cases of linear, linear_dgrad and linear_wgrad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/linear/linear.h"

enum { N, C, K, LOW, PLAIN }; /* PLAIN: no bias */

static struct node *build_linear_case(struct graph *g, const struct op_case *c)
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

static struct node *build_linear_dgrad_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;

	return graph_node(g, &(struct node_spec){ .op = &op_linear_dgrad,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, SHAPE(s[N], s[K])),
							  case_input(g, "w", DTYPE_F32, SHAPE(s[K], s[C]))) });
}

static struct node *build_linear_wgrad_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct tensor *db = s[PLAIN] ? NULL : case_input(g, "db", DTYPE_F32, SHAPE(s[K]));

	return graph_node(g, &(struct node_spec){ .op = &op_linear_wgrad,
						  NODE_OUT(NULL, db),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[N], s[C])),
							  case_input(g, "dy", DTYPE_F32, SHAPE(s[N], s[K]))) });
}

static double bound_linear_bias_error(const struct case_values *v, int64_t i)
{
	return v->in[2] ? fabs(v->in[2][i % v->node->out[0]->shape.dim[1]]) : 0;
}

#define CASE(what, b, f, ...) { what, .build = (b), .rounds_first = (f), .size = { __VA_ARGS__ } }
#define LAYERS(b, f)                                                                                                   \
	CASE("no samples", b, f, 0, 64, 10), CASE("one sample", b, f, 1, 64, 10),                                      \
		CASE("ten classes", b, f, 37, 64, 10), CASE("a word", b, f, 1, 192, 37, 1),                            \
		CASE("two words", b, f, 2, 32, 5, 1), CASE("three samples", b, f, 3, 160, 50),                         \
		CASE("four words, no bias", b, f, 4, 64, 33, 1, 1), CASE("odd sizes", b, f, 13, 51, 7),                \
		CASE("thousand classes", b, f, 16, 512, 1000), CASE("between layers", b, f, 66, 96, 130, 1),           \
		CASE("between layers, no bias", b, f, 65, 33, 48, 1, 1),                                               \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_linear[] = { LAYERS(build_linear_case, bound_linear_bias_error) };
const struct op_case cases_linear_dgrad[] = { LAYERS(build_linear_dgrad_case, NULL) };
const struct op_case cases_linear_wgrad[] = { LAYERS(build_linear_wgrad_case, NULL) };
