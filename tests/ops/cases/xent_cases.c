/* SPDX-License-Identifier: Apache-2.0 */
/* xent_cases.c: test cases of xent and xent_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/xent/xent.h"

#define XENT_ROUNDINGS 24 /* exponential and logarithm, each accurate to a few units in the last place, and few sums */

/* size: N, K, percent of label smoothing, labels of a row (0: 1). */
static struct xent_attr make_xent_attr(const struct op_case *c)
{
	return (struct xent_attr){ .label_smoothing = (double)c->size[2] / 100 };
}

#define LOSSES_LEAST 16 /* cases with fewer rows omit the optional losses */

static struct tensor *add_label_input(struct graph *g, const struct op_case *c)
{
	return case_input(g, "labels", DTYPE_I32, c->size[3] == 2 ? SHAPE(c->size[0], 2) : SHAPE(c->size[0]));
}

static struct node *build_xent_case(struct graph *g, const struct op_case *c)
{
	struct xent_attr attr = make_xent_attr(c);
	struct tensor *losses =
		c->size[0] < LOSSES_LEAST ? NULL : case_input(g, "losses", DTYPE_F64, SHAPE(c->size[0]));

	return graph_node(
		g, &(struct node_spec){ .op = &op_xent,
					NODE_OUT(NULL, NULL, losses),
					NODE_ATTR(attr),
					NODE_IN(case_input(g, "logits", DTYPE_F32, SHAPE(c->size[0], c->size[1])),
						add_label_input(g, c)) });
}

static struct node *build_xent_grad_case(struct graph *g, const struct op_case *c)
{
	struct xent_attr attr = make_xent_attr(c);

	return graph_node(g,
			  &(struct node_spec){
				  .op = &op_xent_grad,
				  NODE_OUT(NULL),
				  NODE_ATTR(attr),
				  NODE_IN(case_input(g, "logits", DTYPE_F32, SHAPE(c->size[0], c->size[1])),
					  add_label_input(g, c), case_input(g, "lse", DTYPE_F32, SHAPE(c->size[0]))) });
}

static double compute_row_lse(const double *row, int64_t k)
{
	double max = row[0], sum = 0;

	for (int64_t j = 1; j < k; j++)
		max = row[j] > max ? row[j] : max;
	for (int64_t j = 0; j < k; j++)
		sum += exp(row[j] - max);
	return max + log(sum);
}

static void fill_xent_case(const struct op_case *c, struct case_values *v)
{
	int64_t k = c->size[1], per_row = c->size[3] == 2 ? 2 : 1;

	for (int64_t i = 0; i < c->size[0]; i++) {
		for (int64_t j = 0; j < per_row; j++) /* every fifth row has one label twice */
			v->in[1][i * per_row + j] = (double)((i + (i % 5 ? j : 0)) * 13 % k);
		if (v->node->op == &op_xent_grad)
			v->in[2][i] = compute_row_lse(v->in[0] + i * k, k);
	}
}

/* Every third row is ignored. */
static void fill_xent_ignored_labels(const struct op_case *c, struct case_values *v)
{
	fill_xent_case(c, v);
	for (int64_t i = 0; i < case_count(v->node->in[1]); i++)
		if (i / (c->size[3] == 2 ? 2 : 1) % 3 == 0)
			v->in[1][i] = -1;
}

/* Equal logits: their index decides which of them rank above the label's. */
static void fill_xent_equal_logits(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0] * c->size[1]; i++)
		v->in[0][i] = (double)(i * 5 % 4);
	fill_xent_case(c, v);
}

/* NaN: the label's logit, another one, all of a row, and rows without. */
static void fill_xent_nan_logits(const struct op_case *c, struct case_values *v)
{
	int64_t k = c->size[1];

	for (int64_t i = 0; i < c->size[0]; i++)
		for (int64_t j = 0; j < k; j++)
			if (i % 4 == 2 || (i % 4 == 0 && j == i * 13 % k) || (i % 4 == 1 && j == (i * 13 + 1) % k))
				v->in[0][i * k + j] = NAN;
	fill_xent_case(c, v);
}

static void fill_xent_large_logits(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[0] * c->size[1]; i++)
		v->in[0][i] = (double)(i * 31 % 201 - 100) * 3;
	fill_xent_case(c, v);
}

static double bound_xent_error(const struct case_values *v, int k, double *terms)
{
	int64_t n = v->node->in[0]->shape.dim[0], classes = v->node->in[0]->shape.dim[1];
	double sum = 0;

	for (int64_t i = 0; i < n; i++) {
		double max = 0;

		for (int64_t j = 0; j < classes; j++)
			max = fmax(max, fabs(v->in[0][i * classes + j]));
		if (k == XENT_OUT_LSE)
			terms[i] = max + 1 + log((double)classes);
		if (k == XENT_OUT_LOSSES)
			terms[i] = 2 * max + 2 + log((double)classes);
		sum += 2 * max + 2 + log((double)classes);
	}
	for (int r = 0; k == XENT_OUT_RESULT && r < XENT_RESULTS; r++)
		terms[r] = r == XENT_LOSS_SUM ? sum : 0;
	return XENT_ROUNDINGS + (double)classes;
}

static double bound_xent_grad_error(const struct case_values *v, int k, double *terms)
{
	int64_t classes = v->node->in[0]->shape.dim[1];
	double scale = v->page->inv_count * v->page->loss_scale;

	(void)k;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double logit = v->in[0][i], lse = v->in[2][i / classes], p = exp(logit - lse);

		terms[i] = scale * (p * (1 + fabs(logit) + fabs(lse)) + 1);
	}
	return XENT_ROUNDINGS;
}

#define ROWS(b, f)                                                                                                     \
	{ "no samples", .build = (b), .fill = fill_xent_case, .bound = (f), .size = { 0, 10, 0 } },                    \
		{ "two classes", .build = (b), .fill = fill_xent_case, .bound = (f), .size = { 9, 2, 0 } },            \
		{ "ten classes", .build = (b), .fill = fill_xent_case, .bound = (f), .size = { 37, 10, 0 } },          \
		{ "smoothed", .build = (b), .fill = fill_xent_case, .bound = (f), .size = { 37, 10, 10 } },            \
		{ "thousand classes, smoothed", .build = (b), .fill = fill_xent_case, .bound = (f),                    \
		  .size = { 16, 1000, 10 } },                                                                          \
		{ "rows without a label", .build = (b), .fill = fill_xent_ignored_labels, .bound = (f),                \
		  .size = { 19, 10, 10 } },                                                                            \
		{ "equal logits", .build = (b), .fill = fill_xent_equal_logits, .bound = (f), .size = { 23, 7, 0 } },  \
		{ "two labels", .build = (b), .fill = fill_xent_case, .bound = (f), .size = { 37, 10, 0, 2 } },        \
		{ "two labels, smoothed", .build = (b), .fill = fill_xent_case, .bound = (f),                          \
		  .size = { 23, 100, 10, 2 } },                                                                        \
		{ "two labels or none", .build = (b), .fill = fill_xent_ignored_labels, .bound = (f),                  \
		  .size = { 19, 10, 10, 2 } },                                                                         \
		{ "NaN logits, two labels", .build = (b), .fill = fill_xent_nan_logits, .bound = (f),                  \
		  .size = { 23, 10, 0, 2 } },                                                                          \
		{ "NaN logits", .build = (b), .fill = fill_xent_nan_logits, .bound = (f), .size = { 23, 10, 0 } },     \
		{ "NaN logits, three classes", .build = (b), .fill = fill_xent_nan_logits, .bound = (f),               \
		  .size = { 17, 3, 10 } },                                                                             \
		{ "NaN logits, one class", .build = (b), .fill = fill_xent_nan_logits, .bound = (f),                   \
		  .size = { 6, 1, 0 } },                                                                               \
		{ "large logits", .build = (b), .fill = fill_xent_large_logits, .bound = (f), .size = { 11, 17, 0 } }, \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_xent[] = { ROWS(build_xent_case, bound_xent_error) };
const struct op_case cases_xent_grad[] = { ROWS(build_xent_grad_case, bound_xent_grad_error) };
