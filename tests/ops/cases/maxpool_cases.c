/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool_cases.c: test cases of maxpool and maxpool_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/maxpool/maxpool.h"

enum { N, H, W, C, KERNEL, STRIDE, PAD };

static struct maxpool_attr make_maxpool_attr(const struct op_case *c)
{
	return (struct maxpool_attr){ .kernel = (int)c->size[KERNEL],
				      .stride = (int)c->size[STRIDE],
				      .pad = (int)c->size[PAD],
				      .in_shape = SHAPE(c->size[N], c->size[H], c->size[W], c->size[C]) };
}

static struct shape make_pool_shape(const struct op_case *c)
{
	const int64_t *s = c->size;

	return SHAPE(s[N], (s[H] + 2 * s[PAD] - s[KERNEL]) / s[STRIDE] + 1,
		     (s[W] + 2 * s[PAD] - s[KERNEL]) / s[STRIDE] + 1, s[C]);
}

static struct node *build_maxpool_case(struct graph *g, const struct op_case *c)
{
	struct maxpool_attr attr = make_maxpool_attr(c);

	return graph_node(g, &(struct node_spec){ .op = &op_maxpool,
						  NODE_OUT(NULL, NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "x", DTYPE_F32, attr.in_shape)) });
}

static struct node *build_maxpool_grad_case(struct graph *g, const struct op_case *c)
{
	struct maxpool_attr attr = make_maxpool_attr(c);

	return graph_node(g, &(struct node_spec){ .op = &op_maxpool_grad,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, make_pool_shape(c)),
							  case_input(g, "index", DTYPE_U8, make_pool_shape(c))) });
}

/* Many equal values: the first of them is the maximum. */
static void fill_maxpool_pool_ties(const struct op_case *c, struct case_values *v)
{
	(void)c;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i++)
		v->in[0][i] = (double)(i * 7 % 3);
}

static void fill_maxpool_pool_nans(const struct op_case *c, struct case_values *v)
{
	(void)c;
	for (int64_t i = 0; i < case_count(v->node->in[0]); i += 5)
		v->in[0][i] = i % 2 ? NAN : i % 3 ? -INFINITY : INFINITY;
}

/* Indices inside the image, as from a forward pass: a position of the window, or the first position inside. */
static void fill_maxpool_pool_index(const struct op_case *c, struct case_values *v)
{
	const int64_t *out = v->node->in[1]->shape.dim;

	for (int64_t i = 0; i < case_count(v->node->in[1]); i++) {
		int64_t q = i / out[3] % out[2], p = i / out[3] / out[2] % out[1];
		int64_t place = i % (c->size[KERNEL] * c->size[KERNEL]);
		int64_t h = p * c->size[STRIDE] - c->size[PAD] + place / c->size[KERNEL];
		int64_t w = q * c->size[STRIDE] - c->size[PAD] + place % c->size[KERNEL];

		if (h < 0 || h >= c->size[H] || w < 0 || w >= c->size[W])
			place = c->size[PAD] * c->size[KERNEL] + c->size[PAD];
		v->in[1][i] = (double)place;
	}
}

const struct op_case cases_maxpool[] = {
	{ "no images", .build = build_maxpool_case, .exact = true, .size = { 0, 8, 8, 16, 3, 2, 1 } },
	{ "3x3/2", .build = build_maxpool_case, .exact = true, .size = { 2, 16, 16, 64, 3, 2, 1 } },
	{ "3x3/2, odd image and channels", .build = build_maxpool_case, .exact = true,
	  .size = { 2, 15, 13, 19, 3, 2, 1 } },
	{ "2x2/2", .build = build_maxpool_case, .exact = true, .size = { 1, 9, 8, 16, 2, 2, 0 } },
	{ "3x3/1", .build = build_maxpool_case, .exact = true, .size = { 1, 9, 8, 16, 3, 1, 1 } },
	{ "5x5/2", .build = build_maxpool_case, .exact = true, .size = { 2, 11, 8, 16, 5, 2, 2 } },
	{ "ties", .build = build_maxpool_case, .fill = fill_maxpool_pool_ties, .exact = true,
	  .size = { 2, 11, 11, 24, 3, 2, 1 } },
	{ "NaN and infinities", .build = build_maxpool_case, .fill = fill_maxpool_pool_nans, .exact = true,
	  .size = { 2, 11, 11, 24, 3, 2, 1 } },
	{ NULL },
};

const struct op_case cases_maxpool_grad[] = {
	{ "no images", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 0, 8, 8, 16, 3, 2, 1 } },
	{ "3x3/2", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 2, 16, 16, 64, 3, 2, 1 } },
	{ "3x3/2, odd image and channels", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 2, 15, 13, 19, 3, 2, 1 } },
	{ "2x2/2", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 1, 9, 8, 16, 2, 2, 0 } },
	{ "1x1/2", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 1, 9, 8, 16, 1, 2, 0 } },
	{ "3x3/1", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 1, 9, 8, 16, 3, 1, 1 } },
	{ "5x5/2", .build = build_maxpool_grad_case, .fill = fill_maxpool_pool_index,
	  .size = { 2, 11, 8, 16, 5, 2, 2 } },
	{ NULL },
};
