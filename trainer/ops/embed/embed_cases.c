/* embed_cases.c: test cases of embed and embed_grad. */
#include "trainer/ops/cases.h"
#include "trainer/ops/embed/embed.h"

enum { N, T, V, P, C, MORE };

static struct node *build(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;

	return graph_node(g, &(struct node_spec){ .op = &op_embed,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "tokens", DTYPE_I32, SHAPE(s[N], s[T])),
							  case_input(g, "wte", DTYPE_F32, SHAPE(s[V], s[C])),
							  case_input(g, "wpe", DTYPE_F32, SHAPE(s[P], s[C]))) });
}

static struct node *build_grad(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct embed_grad_attr attr = { s[V], s[P] };
	struct tensor *more = s[MORE] ? case_input(g, "more", DTYPE_F32, SHAPE(s[V], s[C])) : NULL;

	return graph_node(g,
			  &(struct node_spec){ .op = &op_embed_grad,
					       NODE_OUT(NULL, NULL),
					       NODE_ATTR(attr),
					       NODE_IN(case_input(g, "dx", DTYPE_F32, SHAPE(s[N] * s[T], s[C])),
						       case_input(g, "tokens", DTYPE_I32, SHAPE(s[N], s[T])), more) });
}

/* Every third token is the same one: a row with many summands. */
static void fill(const struct op_case *c, struct case_values *v)
{
	double *tokens = v->node->op == &op_embed ? v->in[0] : v->in[1];

	for (int64_t i = 0; i < c->size[N] * c->size[T]; i++)
		tokens[i] = (double)(i % 3 ? i * 7 % c->size[V] : c->size[V] / 2);
}

#define TABLES(b)                                                                                                      \
	{ "no samples", .build = (b), .fill = fill, .size = { 0, 4, 5, 4, 8, 1 } },                                    \
		{ "one token", .build = (b), .fill = fill, .size = { 1, 1, 1, 1, 1 } },                                \
		{ "odd sizes", .build = (b), .fill = fill, .size = { 3, 7, 11, 9, 19 } },                              \
		{ "odd sizes, tied", .build = (b), .fill = fill, .size = { 3, 7, 11, 9, 19, 1 } },                     \
		{ "many tokens", .build = (b), .fill = fill, .size = { 4, 50, 12, 50, 8 } },                           \
		{ "wide", .build = (b), .fill = fill, .size = { 2, 33, 50, 40, 160, 1 } },                             \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_embed[] = { TABLES(build) };
const struct op_case cases_embed_grad[] = { TABLES(build_grad) };
