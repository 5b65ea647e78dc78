/* SPDX-License-Identifier: Apache-2.0 */
/* watch_cases.c: test cases of watch and watch_hold. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/watch/watch.h"

/* size: elements, whether `before` is present. */
static struct node *build_watch_case(struct graph *g, const struct op_case *c)
{
	struct tensor *x = case_input(g, "x", DTYPE_F32, SHAPE(c->size[0]));
	struct tensor *before = c->size[1] ? case_input(g, "before", DTYPE_F32, SHAPE(c->size[0])) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_watch, NODE_IN(x, before), NODE_OUT(NULL) });
}

static struct node *build_watch_hold_case(struct graph *g, const struct op_case *c)
{
	return graph_node(g, &(struct node_spec){ .op = &op_watch_hold,
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(c->size[0]))),
						  NODE_OUT(NULL) });
}

/* All magnitudes of f32, and values that no bucket counts. */
static void fill_watch_edges(const struct op_case *c, struct case_values *v)
{
	static const double values[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 0x1p-48, 0x1.8p-49, 0x1p16, -1, 3 };

	for (int64_t i = 0; i < c->size[0]; i++)
		v->in[0][i] = ldexp(v->in[0][i], (int)(i * 37 % 200) - 100);
	for (int i = 0; i < 10; i++)
		v->in[0][i * 3] = values[i];
}

/* Differences that are exact in every type: rounding could change the bucket. */
static void fill_exact_steps(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0]; i++) {
		v->in[0][i] = round(fmax(-1, fmin(1, v->in[0][i])) * 64) / 64;
		v->in[1][i] = round(fmax(-1, fmin(1, v->in[1][i])) * 64) / 64;
	}
}

/* Counts are exact. Squares are summed in f64, so rounding is visible only in f64. */
static double bound_watch_error(const struct case_values *v, int k, double *terms)
{
	for (int i = 0; i < WATCH_VALUES; i++)
		terms[i] = i == WATCH_SUMSQ || i == WATCH_LARGEST ? v->out[k][i] : 0;
	return v->node->in[0]->dtype == DTYPE_F64 ? (double)case_count(v->node->in[0]) : 1;
}

const struct op_case cases_watch[] = {
	{ "no elements", .build = build_watch_case, .bound = bound_watch_error, .size = { 0 } },
	{ "one element", .build = build_watch_case, .bound = bound_watch_error, .size = { 1 } },
	{ "odd length", .build = build_watch_case, .bound = bound_watch_error, .size = { 1037 } },
	{ "many parts", .build = build_watch_case, .bound = bound_watch_error, .size = { 300007 } },
	{ "not finite, zeros, all sizes", .build = build_watch_case, .fill = fill_watch_edges,
	  .bound = bound_watch_error, .size = { 1201 } },
	{ "a difference", .build = build_watch_case, .fill = fill_exact_steps, .bound = bound_watch_error,
	  .size = { 2051, 1 } },
	{ NULL },
};

const struct op_case cases_watch_hold[] = {
	{ "no elements", .build = build_watch_hold_case, .exact = true, .size = { 0 } },
	{ "odd length", .build = build_watch_hold_case, .exact = true, .size = { 1037 } },
	{ "many parts", .build = build_watch_hold_case, .exact = true, .size = { 300007 } },
	{ NULL },
};
