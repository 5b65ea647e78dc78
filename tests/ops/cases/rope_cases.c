/* SPDX-License-Identifier: Apache-2.0 */
/* rope_cases.c: test cases of rope and rope_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/rope/rope.h"

#define ROPE_ROUNDINGS 8

enum { N, T, H, K, D, ROTARY, JOINED, FIRST };

static struct rope_attr make_rope_attr(const struct op_case *c)
{
	const int64_t *s = c->size;
	struct rope_attr a = { .heads = s[H],
			       .shared = s[K],
			       .d = s[D],
			       .seq = s[T],
			       .rotary = s[ROTARY],
			       .query_scale = 0.75,
			       .factor = 1.25 };

	for (int64_t i = 0; i < a.rotary / 2; i++)
		a.frequency[i] = pow(100, -2 * (double)i / (double)a.rotary);
	return a;
}

/* Heads in operand i of the side that is apart. */
static int64_t count_heads(const int64_t *s, int i)
{
	return i ? s[K] : s[JOINED] ? s[H] + 2 * s[K] : s[H];
}

static void add_operands(struct graph *g, const struct op_case *c, struct tensor *ret[4])
{
	static const char *const names[3] = { "q", "k", "v" };
	const int64_t *s = c->size;

	for (int i = 0; i < 3; i++)
		ret[i] = i && s[JOINED]
				 ? NULL
				 : case_input(g, names[i], DTYPE_F32, SHAPE(s[N] * s[T], count_heads(s, i) * s[D]));
	ret[3] = s[FIRST] ? case_input(g, "first", DTYPE_I32, SHAPE(1)) : NULL;
}

static struct node *build_rope_case(struct graph *g, const struct op_case *c)
{
	struct rope_attr attr = make_rope_attr(c);
	struct tensor *t[4];

	add_operands(g, c, t);
	return rope_add(g, t, &attr, "rope") ? g->nodes[g->n_nodes - 1] : NULL;
}

static void fill_rope_case(const struct op_case *c, struct case_values *v)
{
	if (c->size[FIRST])
		v->in[3][0] = (double)c->size[FIRST];
}

static struct node *build_rope_grad_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct rope_attr attr = make_rope_attr(c);
	struct tensor *t[3] = { NULL };

	for (int i = 0; i < 3; i++)
		if (!i || !s[JOINED])
			t[i] = graph_act(g, DTYPE_F32, SHAPE(s[N] * s[T], count_heads(s, i) * s[D]), "d%d", i);
	return graph_node(g, &(struct node_spec){
				     .op = &op_rope_grad,
				     NODE_OUT(t[0], t[1], t[2]),
				     NODE_ATTR(attr),
				     NODE_IN(case_input(g, "dqkv", DTYPE_F32, SHAPE(s[N] * s[T], 3 * s[H] * s[D]))) });
}

/* The terms of output k: of a rotated channel the two that it is made of. */
static double bound_rope_error(const struct case_values *v, int k, double *terms)
{
	const struct node *n = v->node;
	const struct rope_attr *a = n->attr;
	const bool back = n->op == &op_rope_grad;
	const int64_t half = a->rotary / 2, to = n->out[k]->shape.dim[1];
	struct rope_copy copy[3];

	rope_copies(a, back, back ? !n->out[1] : !n->in[1], copy);
	for (int64_t i = 0; i < case_count(n->out[k]); i++)
		for (int p = 0; p < 3; p++) {
			const struct rope_copy *c = &copy[p];
			const int64_t row = i / to, at = i % to - c->to, group = at / (c->times * a->d), e = at % a->d;
			const double *from =
				v->in[c->source] + row * n->in[c->source]->shape.dim[1] + c->from + group * c->n * a->d;
			const bool turned = c->turns && e < a->rotary;

			if (c->target != k || at < 0 || at >= c->count * c->times * a->d)
				continue;
			terms[i] = 0;
			for (int64_t h = 0; h < c->n; h++, from += a->d)
				terms[i] += c->scale *
					    (fabs(from[e]) + (turned ? fabs(from[e < half ? e + half : e - half]) : 0));
			terms[i] *= turned ? a->factor : 1;
		}
	return ROPE_ROUNDINGS + (double)(a->heads / a->shared);
}

/* size: samples, sequence, query heads, key heads, width of a head, rotated part, all in one tensor. */
#define CASE(what, b, ...)                                                                                             \
	{                                                                                                              \
		what, .build = (b), .bound = bound_rope_error, .size = { __VA_ARGS__ }                                 \
	}
#define SHAPES(b)                                                                                                      \
	CASE("no samples", b, 0, 4, 2, 1, 8, 8), CASE("one head", b, 2, 5, 1, 1, 6, 6),                                \
		CASE("groups", b, 2, 13, 6, 2, 20, 20), CASE("heads of 64", b, 1, 70, 4, 4, 64, 64),                   \
		CASE("a part rotated", b, 2, 9, 4, 2, 40, 12), CASE("not rotated", b, 2, 9, 4, 2, 16, 0),              \
		CASE("in one", b, 3, 7, 6, 3, 24, 24, 1), CASE("in one, a part rotated", b, 1, 33, 4, 1, 48, 36, 1),   \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_rope[] = { { "later positions", .build = build_rope_case, .fill = fill_rope_case,
					.bound = bound_rope_error, .size = { 1, 5, 4, 2, 16, 12, 0, 29 } },
				      { "later positions, in one", .build = build_rope_case, .fill = fill_rope_case,
					.bound = bound_rope_error, .size = { 1, 3, 4, 2, 16, 16, 1, 7 } },
				      SHAPES(build_rope_case) };
const struct op_case cases_rope_grad[] = { SHAPES(build_rope_grad_case) };
