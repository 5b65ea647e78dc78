/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead_cases.c: test cases of lmhead. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define LMHEAD_ROUNDINGS 32

enum { R, C, V, GRAD, KEEP, EVERY, IGNORED, BEST, CAP };

static struct node *build_lmhead_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct tensor *dx = s[GRAD] ? case_input(g, "dx", DTYPE_F32, SHAPE(s[R], s[C])) : NULL;
	struct tensor *dw = s[GRAD] ? case_input(g, "dw", DTYPE_F32, SHAPE(s[V], s[C])) : NULL;
	struct tensor *losses = s[GRAD] ? case_input(g, "losses", DTYPE_F64, SHAPE(s[R])) : NULL;
	struct tensor *logits = s[KEEP] ? case_input(g, "logits", DTYPE_F32, SHAPE(s[R], s[V])) : NULL;

	struct tensor *best = s[BEST] ? case_input(g, "best", DTYPE_I32, SHAPE(s[R])) : NULL;

	const struct lmhead_attr attr = { (double)s[CAP] };

	return graph_node(g, &(struct node_spec){ .op = &op_lmhead,
						  NODE_ATTR(attr),
						  NODE_OUT(NULL, dx, dw, logits, losses, best),
						  NODE_IN(case_input(g, "x", DTYPE_F32, SHAPE(s[R], s[C])),
							  case_input(g, "w", DTYPE_F32, SHAPE(s[V], s[C])),
							  case_input(g, "targets", DTYPE_I32, SHAPE(s[R]))) });
}

/* Weights small enough for a flat softmax; of EVERY targets (0: 5) the last IGNORED (0: 1) are. */
static void fill_lmhead_case(const struct op_case *c, struct case_values *v)
{
	const int64_t every = c->size[EVERY] ? c->size[EVERY] : 5, ignored = c->size[IGNORED] ? c->size[IGNORED] : 1;

	for (int64_t i = 0; i < c->size[R]; i++)
		v->in[2][i] = i % every >= every - ignored ? -1 : (double)(i * 13 % c->size[V]);
	for (int64_t i = 0; i < c->size[V] * c->size[C]; i++)
		if (fabs(v->in[1][i]) > 0.5)
			v->in[1][i] /= 8;
}

static void fill_lmhead_ignored_targets(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[R]; i++)
		v->in[2][i] = -1;
}

/* Computes the logits of one row; returns log sum exp. *ret_most: largest sum of absolute products over the logits. */
static double compute_case_logits(const struct case_values *v, int64_t r, double *logits, double *ret_most)
{
	int64_t c = v->node->in[1]->shape.dim[1], words = v->node->in[1]->shape.dim[0];
	double max = -INFINITY, sum = 0;

	*ret_most = 0;
	for (int64_t j = 0; j < words; j++) {
		double terms = 0;

		logits[j] = 0;
		for (int64_t i = 0; i < c; i++) {
			logits[j] += v->in[0][r * c + i] * v->in[1][j * c + i];
			terms += fabs(v->in[0][r * c + i] * v->in[1][j * c + i]);
		}
		if (lmhead_cap(v->node) > 0)
			logits[j] = lmhead_cap(v->node) * tanh(logits[j] / lmhead_cap(v->node));
		*ret_most = fmax(*ret_most, terms);
		max = fmax(max, logits[j]);
	}
	for (int64_t j = 0; j < words; j++)
		sum += exp(logits[j] - max);
	return max + log(sum);
}

/* Rounding may decide which of the two largest logits is the larger one. */
static bool is_near_tie(const double *logits, int64_t words, double most)
{
	double first = -INFINITY, second = -INFINITY;

	for (int64_t j = 0; j < words; j++) {
		second = fmax(second, fmin(first, logits[j]));
		first = fmax(first, logits[j]);
	}
	return first - second < 1e-5 * most;
}

/* Adds the absolute terms of row r to those of output k. */
static void add_lmhead_terms(const struct case_values *v, int k, int64_t r, double *terms)
{
	int64_t c = v->node->in[1]->shape.dim[1], words = v->node->in[1]->shape.dim[0];
	double scale = v->page->inv_count * v->page->loss_scale, logits[1024], most, target = v->in[2][r];
	double lse = compute_case_logits(v, r, logits, &most);

	if (k == LMHEAD_BEST)
		terms[r] = is_near_tie(logits, words, most) ? 0x1p40 : 0;
	if (k == LMHEAD_RESULT)
		terms[XENT_LOSS_SUM] += target < 0 ? 0 : 2 * most + fabs(lse) + 1;
	if (k == LMHEAD_LOSSES)
		terms[r] = target < 0 ? 0 : 2 * most + fabs(lse) + 1;
	for (int64_t j = 0; j < words && (k == LMHEAD_LOGITS || target >= 0); j++) {
		double d = scale * (exp(logits[j] - lse) * (1 + most) + (j == (int64_t)target));

		if (k == LMHEAD_LOGITS)
			terms[r * words + j] = most;
		else if (v->node->in[0]->dtype == DTYPE_F16) /* f16 loses precision of gradients below its normal
							      * numbers */
			d = fmax(d, 0x1p-14);
		for (int64_t i = 0; i < c; i++) {
			if (k == LMHEAD_DX)
				terms[r * c + i] += d * fabs(v->in[1][j * c + i]);
			if (k == LMHEAD_DW)
				terms[j * c + i] += d * fabs(v->in[0][r * c + i]);
		}
	}
}

static double bound_lmhead_error(const struct case_values *v, int k, double *terms)
{
	const struct shape *x = &v->node->in[0]->shape;
	int64_t words = v->node->in[1]->shape.dim[0];

	for (int64_t i = 0; i < case_count(v->node->out[k]); i++)
		terms[i] = 0;
	for (int64_t r = 0; r < x->dim[0]; r++)
		add_lmhead_terms(v, k, r, terms);
	return LMHEAD_ROUNDINGS + (double)(k == LMHEAD_DW ? x->dim[0] : words) + (double)x->dim[1];
}

#define ROUNDED (1 << LMHEAD_DX | 1 << LMHEAD_DW)
#define CASE(what, ...)                                                                                                \
	{                                                                                                              \
		what, .build = build_lmhead_case, .fill = fill_lmhead_case, .bound = bound_lmhead_error,               \
		      .rounds_inside = ROUNDED, __VA_ARGS__                                                            \
	}

const struct op_case cases_lmhead[] = {
	CASE("no rows", .size = { 0, 8, 11, 1 }),
	CASE("evaluation", .size = { 7, 12, 29 }),
	CASE("evaluation, logits kept", .size = { 7, 12, 29, 0, 1 }),
	CASE("evaluation, best words", .size = { 33, 12, 301, 0, 0, 2, 1, 1 }),
	CASE("best words of rows that are left out", .size = { 140, 8, 300, 0, 0, 100, 97, 1 }),
	CASE("best words, logits kept", .size = { 7, 12, 29, 0, 1, 0, 0, 1 }),
	CASE("a soft cap", .size = { 13, 19, 37, 1, 1, 0, 0, 1, 3 }),
	CASE("a soft cap, rows that are left out", .size = { 140, 8, 300, 1, 0, 100, 97, 0, 2 }),
	CASE("odd sizes", .size = { 13, 19, 37, 1 }),
	CASE("groups of rows, tiles of words", .size = { 1030, 8, 1000, 1, 1 }),
	CASE("a whole group and zeros", .size = { 1040, 8, 40, 1, 0, 2 }),
	CASE("a whole group and a smaller one", .size = { 1040, 8, 40, 1, 0, 10 }),
	CASE("a few rows", .size = { 1040, 8, 40, 1, 0, 100, 97 }),
	CASE("every target counts", .size = { 13, 19, 37, 1, 0, 100 }),
	CASE("many words, a wide cap", .size = { 9, 48, 1000, 1, 0, 0, 0, 0, 30 }),
	CASE("many words", .size = { 9, 48, 1000, 1 }),
	{ "nothing counts", .build = build_lmhead_case, .fill = fill_lmhead_ignored_targets,
	  .bound = bound_lmhead_error, .size = { 6, 8, 5, 1 } },
	{ NULL },
};
