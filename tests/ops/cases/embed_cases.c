/* SPDX-License-Identifier: Apache-2.0 */
/* embed_cases.c: test cases of embed and embed_grad. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/embed/embed.h"

enum { N, T, V, P, C, MORE, KIND, SCALE }; /* P 0: no positions; SCALE: in percent, 0: 1 */

enum { SPREAD, EQUAL, SKEWED };

static struct embed_attr make_embed_attr(const struct op_case *c)
{
	const int64_t *s = c->size;

	return (struct embed_attr){ s[V], s[P], s[SCALE] ? (double)s[SCALE] / 100 : 1 };
}

static struct node *build_embed_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct embed_attr attr = make_embed_attr(c);
	struct tensor *wpe = s[P] ? case_input(g, "wpe", DTYPE_F32, SHAPE(s[P], s[C])) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_embed,
						  NODE_OUT(NULL),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "tokens", DTYPE_I32, SHAPE(s[N], s[T])),
							  case_input(g, "wte", DTYPE_F32, SHAPE(s[V], s[C])), wpe) });
}

static struct node *build_embed_grad_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct embed_attr attr = make_embed_attr(c);
	struct tensor *more = s[MORE] ? case_input(g, "more", DTYPE_F32, SHAPE(s[V], s[C])) : NULL;

	return graph_node(g,
			  &(struct node_spec){ .op = &op_embed_grad,
					       NODE_OUT(NULL, NULL),
					       NODE_ATTR(attr),
					       NODE_IN(case_input(g, "dx", DTYPE_F32, SHAPE(s[N] * s[T], s[C])),
						       case_input(g, "tokens", DTYPE_I32, SHAPE(s[N], s[T])), more) });
}

/* SPREAD: every third token is the same, a row with many summands. EQUAL: all are the same. SKEWED: one in seven is
 * drawn from all tokens, the others from few. */
static void fill_embed_case(const struct op_case *c, struct case_values *v)
{
	double *tokens = v->node->op == &op_embed ? v->in[0] : v->in[1];
	const int64_t words = c->size[V], kind = c->size[KIND];

	for (int64_t i = 0; i < c->size[N] * c->size[T]; i++) {
		const int64_t drawn = (i * 7919 + 13) % 10007;

		tokens[i] = (double)(i % 3 && kind == SPREAD ? i * 7 % words : words / 2);
		if (kind == SKEWED)
			tokens[i] = (double)(drawn % (drawn % 7 ? words < 5 ? words : 5 : words));
	}
}

#define TABLES(b)                                                                                                      \
	{ "no samples", .build = (b), .fill = fill_embed_case, .size = { 0, 4, 5, 4, 8, 1 } },                         \
		{ "one token", .build = (b), .fill = fill_embed_case, .size = { 1, 1, 1, 1, 1 } },                     \
		{ "odd sizes", .build = (b), .fill = fill_embed_case, .size = { 3, 7, 11, 9, 19 } },                   \
		{ "odd sizes, tied", .build = (b), .fill = fill_embed_case, .size = { 3, 7, 11, 9, 19, 1 } },          \
		{ "many tokens", .build = (b), .fill = fill_embed_case, .size = { 4, 50, 12, 50, 8 } },                \
		{ "wide", .build = (b), .fill = fill_embed_case, .size = { 2, 33, 50, 40, 160, 1 } },                  \
		{ "one token, often", .build = (b), .fill = fill_embed_case, .size = { 7, 97, 9, 97, 16, 1, EQUAL } }, \
		{ "few tokens, often", .build = (b), .fill = fill_embed_case,                                          \
		  .size = { 9, 131, 600, 140, 24, 0, SKEWED } },                                                       \
		{ "few tokens, often, odd", .build = (b), .fill = fill_embed_case,                                     \
		  .size = { 31, 43, 70, 43, 5, 1, SKEWED } },                                                          \
		{ "no positions, scaled", .build = (b), .fill = fill_embed_case,                                       \
		  .size = { 3, 67, 11, 0, 16, 1, SPREAD, 2450 } },                                                     \
		{ "wider than a block", .build = (b), .fill = fill_embed_case, .size = { 1, 3, 3, 3, 2056 } },         \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_embed[] = { TABLES(build_embed_case) };
const struct op_case cases_embed_grad[] = { TABLES(build_embed_grad_case) };
