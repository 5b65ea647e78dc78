/* SPDX-License-Identifier: Apache-2.0 */
/* glu_cases.c: test cases of glu and glu_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/glu/glu.h"

#define GLU_ROUNDINGS 24 /* exponential and division, each accurate to a few units in the last place */

enum { R, F, GELU, JOINED, WIDE };

static struct glu_attr make_glu_attr(const struct op_case *c)
{
	return c->size[GELU] ? GLU_GELU : GLU_SILU;
}

static struct node *build_glu_case(struct graph *g, const struct op_case *c)
{
	struct shape rows = SHAPE(c->size[R], c->size[F] * (1 + c->size[JOINED]));
	struct glu_attr attr = make_glu_attr(c);
	struct tensor *up = c->size[JOINED] ? NULL : case_input(g, "up", DTYPE_F32, rows);

	return graph_node(g, &(struct node_spec){ .op = &op_glu,
						  NODE_IN(case_input(g, "gate", DTYPE_F32, rows), up),
						  NODE_OUT(NULL),
						  NODE_ATTR(attr) });
}

static struct node *build_glu_grad_case(struct graph *g, const struct op_case *c)
{
	struct shape rows = SHAPE(c->size[R], c->size[F] * (1 + c->size[JOINED]));
	struct glu_attr attr = make_glu_attr(c);
	struct tensor *up = c->size[JOINED] ? NULL : case_input(g, "up", DTYPE_F32, rows);

	return graph_node(g, &(struct node_spec){ .op = &op_glu_grad,
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, SHAPE(c->size[R], c->size[F])),
							  case_input(g, "gate", DTYPE_F32, rows), up) });
}

/* From far in the flat part to far in the linear part, where an exponential overflows. */
static void fill_glu_wide_range(const struct op_case *c, struct case_values *v)
{
	double *x = v->node->op == &op_glu ? v->in[0] : v->in[1];
	int64_t n = c->size[R] * c->size[F];

	for (int64_t i = 0; i < n && c->size[WIDE]; i++)
		x[i] = 260 * ((double)i / (double)n - 0.5);
}

/* |gate| and |up| of element i of y. */
static void read_pair(const struct case_values *v, int first, int64_t i, double pair[2])
{
	const struct node *n = v->node;
	const double *gate = v->in[first], *up = n->in[first + 1] ? v->in[first + 1] : NULL;
	int64_t f = glu_width(n->in[first], n->in[first + 1]), at = i / f * n->in[first]->shape.dim[1] + i % f;

	pair[0] = fabs(gate[at]);
	pair[1] = fabs(up ? up[at] : gate[at + f]);
}

static double bound_glu_error(const struct case_values *v, int k, double *terms)
{
	double pair[2];

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->out[0]); i++) {
		read_pair(v, 0, i, pair);
		terms[i] = pair[0] * pair[1] * (1 + fmin(pair[0], 88));
	}
	return GLU_ROUNDINGS;
}

/* Both summands of the derivative are below 1 + |gate|. */
static double bound_glu_grad_error(const struct case_values *v, int k, double *terms)
{
	const struct node *n = v->node;
	const int64_t f = n->in[0]->shape.dim[1], step = n->in[1]->shape.dim[1];
	double pair[2];

	for (int64_t i = 0; i < case_count(n->in[0]); i++) {
		double dy = fabs(v->in[0][i]), *to = terms + i / f * step + i % f;

		read_pair(v, 1, i, pair);
		if (k == 0)
			*to = dy * pair[1] * (1 + pair[0]);
		if (k == 1 || !n->in[2])
			to[k == 1 ? 0 : f] = dy * pair[0] * (1 + fmin(pair[0], 88));
	}
	return GLU_ROUNDINGS;
}

/* size: rows, width, GELU instead of SiLU, gate and up in one tensor, far values. */
#define CASE(what, b, t, ...)                                                                                          \
	{                                                                                                              \
		what, .build = (b), .fill = fill_glu_wide_range, .bound = (t), .size = { __VA_ARGS__ }                 \
	}
#define SHAPES(b, t)                                                                                                   \
	CASE("no rows", b, t, 0, 3), CASE("odd sizes", b, t, 5, 37), CASE("odd sizes, joined", b, t, 5, 37, 0, 1),     \
		CASE("GELU", b, t, 5, 37, 1), CASE("GELU, joined", b, t, 3, 64, 1, 1),                                 \
		CASE("wide range", b, t, 61, 17, 0, 0, 1), CASE("GELU, wide range", b, t, 61, 17, 1, 0, 1),            \
		CASE("long", b, t, 130, 513),                                                                          \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_glu[] = { SHAPES(build_glu_case, bound_glu_error) };
const struct op_case cases_glu_grad[] = { SHAPES(build_glu_grad_case, bound_glu_grad_error) };
