/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cases.c: test cases of attention and attention_grad. */
#include <math.h>

#include "trainer/ops/attention/attention.h"
#include "tests/ops/cases/cases.h"

#define ATTENTION_ROUNDINGS 32

enum { N, T, H, D, PERCENT, WINDOW, DOCUMENTS, CAP };

static struct attention_attr make_attention_attr(const struct op_case *c)
{
	const int64_t *s = c->size;

	return (struct attention_attr){ .heads = s[H],
					.seq = s[T],
					.window = s[WINDOW],
					.cap = (double)s[CAP],
					.dropout = { .p = (double)s[PERCENT] / 100,
						     .stream = rng_stream("case"),
						     .per_sample = s[H] * s[T] * s[T] } };
}

/* NULL unless the case has documents. */
static struct tensor *add_places(struct graph *g, const struct op_case *c)
{
	return c->size[DOCUMENTS] ? case_input(g, "places", DTYPE_I32, SHAPE(c->size[N] * c->size[T])) : NULL;
}

static struct node *build_attention_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct attention_attr attr = make_attention_attr(c);

	return graph_node(
		g, &(struct node_spec){ .op = &op_attention,
					NODE_OUT(NULL, NULL),
					NODE_ATTR(attr),
					NODE_IN(case_input(g, "qkv", DTYPE_F32, SHAPE(s[N] * s[T], 3 * s[H] * s[D])),
						add_places(g, c)) });
}

static struct node *build_attention_grad_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct attention_attr attr = make_attention_attr(c);
	struct shape shape = SHAPE(s[N] * s[T], s[H] * s[D]);

	return graph_node(
		g, &(struct node_spec){ .op = &op_attention_grad,
					NODE_OUT(NULL),
					NODE_ATTR(attr),
					NODE_IN(case_input(g, "dy", DTYPE_F32, shape),
						case_input(g, "qkv", DTYPE_F32, SHAPE(s[N] * s[T], 3 * s[H] * s[D])),
						case_input(g, "y", DTYPE_F32, shape),
						case_input(g, "lse", DTYPE_F32, SHAPE(s[N] * s[T], s[H])),
						add_places(g, c)) });
}

/* One query of one head: its position in qkv. */
struct case_query {
	const struct attention_attr *a;
	const double *qkv;
	int64_t c, d, first, i, at; /* first row of the sequence, position, first channel of the head */
	int64_t begin;		    /* first key it sees */
};

static double dot_absolute(const double *a, const double *b, int64_t d)
{
	double sum = 0;

	for (int64_t i = 0; i < d; i++)
		sum += fabs(a[i] * b[i]);
	return sum;
}

static const double *get_qkv_part(const struct case_query *q, int64_t j, int which)
{
	return q->qkv + (q->first + j) * 3 * q->c + which * q->c + q->at;
}

static double compute_case_score(const struct case_query *q, int64_t j)
{
	const double *a = get_qkv_part(q, q->i, 0), *b = get_qkv_part(q, j, 1);
	double sum = 0;

	for (int64_t i = 0; i < q->d; i++)
		sum += a[i] * b[i];
	sum /= sqrt((double)q->d);
	return q->a->cap > 0 ? q->a->cap * tanh(sum / q->a->cap) : sum;
}

/* Largest sum of absolute products over the scores of a query. */
static double find_largest_score(const struct case_query *q)
{
	double most = 0;

	for (int64_t j = q->begin; j <= q->i; j++)
		most = fmax(most,
			    dot_absolute(get_qkv_part(q, q->i, 0), get_qkv_part(q, j, 1), q->d) / sqrt((double)q->d));
	return most;
}

/* The query of a row's head. begin is searched as the definition says. */
static struct case_query make_case_query(const struct case_values *v, int64_t row, int64_t head)
{
	const struct node *n = v->node;
	const int qkv = n->op == &op_attention ? 0 : 1;
	const struct attention_attr *a = n->attr;
	const double *places = v->in[qkv ? 4 : 1];
	int64_t c = n->in[qkv]->shape.dim[1] / 3, d = c / a->heads;
	struct case_query q = { a, v->in[qkv], c, d, row / a->seq * a->seq, row % a->seq, head * d, row % a->seq };

	while (q.begin > 0 && (!places || places[q.first + q.begin] > 0) &&
	       (!a->window || q.i - (q.begin - 1) < a->window))
		q.begin--;
	return q;
}

/* Documents of 1, 2, … positions, of which the last is cut. */
static void fill_places(const struct op_case *c, double *places)
{
	for (int64_t r = 0; places && r < c->size[N]; r++)
		for (int64_t i = 0, k = 0, n = r + 1; i < c->size[T]; i++, k++) {
			if (k == n) {
				k = 0;
				n += c->size[DOCUMENTS];
			}
			places[r * c->size[T] + i] = (double)k;
		}
}

static void fill_attention(const struct op_case *c, struct case_values *v)
{
	fill_places(c, v->in[1]);
}

/* Fills lse as the forward pass computes it, with arbitrary y. */
static void fill_attention_grad(const struct op_case *c, struct case_values *v)
{
	fill_places(c, v->in[4]);
	for (int64_t r = 0; r < c->size[N] * c->size[T]; r++)
		for (int64_t h = 0; h < c->size[H]; h++) {
			struct case_query q = make_case_query(v, r, h);
			double sum = 0;

			for (int64_t j = q.begin; j <= q.i; j++)
				sum += exp(compute_case_score(&q, j));
			v->in[3][r * c->size[H] + h] = log(sum);
		}
}

/* Roundings of y (k = 0) and of the row LSE (k = 1); terms gets the sum of absolute terms of each element. */
static double bound_attention_error(const struct case_values *v, int k, double *terms)
{
	const struct node *n = v->node;
	const struct attention_attr *a = n->attr;

	for (int64_t r = 0; r < n->in[0]->shape.dim[0]; r++)
		for (int64_t h = 0; h < a->heads; h++) {
			struct case_query q = make_case_query(v, r, h);
			double most = find_largest_score(&q), lse = v->out[1][r * a->heads + h],
			       scale = 1 / (1 - a->dropout.p);

			if (k == 1)
				terms[r * a->heads + h] = 1 + most + fabs(lse);
			for (int64_t e = 0; k == 0 && e < q.d; e++) {
				double sum = 0;

				for (int64_t j = q.begin; j <= q.i; j++)
					sum += exp(compute_case_score(&q, j) - lse) * fabs(get_qkv_part(&q, j, 2)[e]);
				terms[r * q.c + q.at + e] = sum * scale * (1 + most);
			}
		}
	return ATTENTION_ROUNDINGS + (double)a->seq;
}

/* Adds one pair's absolute terms of dq, dk and dv. */
static void add_attention_terms(const struct case_values *v, const struct case_query *q, int64_t j, double *terms)
{
	int64_t row = q->first + q->i, heads = q->a->heads;
	const double *dy = v->in[0] + row * q->c + q->at, *y = v->in[2] + row * q->c + q->at;
	double lse = v->in[3][row * heads + q->at / q->d], scale = 1 / (1 - q->a->dropout.p);
	double p = exp(compute_case_score(q, j) - lse) * (1 + find_largest_score(q) + fabs(lse)) * scale,
	       root = sqrt((double)q->d);
	double ds = p * (dot_absolute(dy, get_qkv_part(q, j, 2), q->d) + dot_absolute(dy, y, q->d)) / root;

	for (int64_t e = 0; e < q->d; e++) {
		terms[row * 3 * q->c + q->at + e] += ds * fabs(get_qkv_part(q, j, 1)[e]);
		terms[(q->first + j) * 3 * q->c + q->c + q->at + e] += ds * fabs(get_qkv_part(q, q->i, 0)[e]);
		terms[(q->first + j) * 3 * q->c + 2 * q->c + q->at + e] += p * fabs(dy[e]);
	}
}

static double bound_attention_grad_error(const struct case_values *v, int k, double *terms)
{
	const struct node *n = v->node;
	const struct attention_attr *a = n->attr;

	(void)k;
	for (int64_t i = 0; i < case_count(n->out[0]); i++)
		terms[i] = 0;
	for (int64_t r = 0; r < n->in[0]->shape.dim[0]; r++)
		for (int64_t h = 0; h < a->heads; h++) {
			struct case_query q = make_case_query(v, r, h);

			for (int64_t j = q.begin; j <= q.i; j++)
				add_attention_terms(v, &q, j, terms);
		}
	return ATTENTION_ROUNDINGS + (double)a->seq;
}

/* size: samples, sequence, heads, width of a head, percent of dropout, window, growth of documents, soft cap. */
#define CASE(what, b, f, t, ...)                                                                                       \
	{ what, .build = (b), .fill = (f), .bound = (t), .rounds_inside = 1 << 0, .size = { __VA_ARGS__ } }
#define SHAPES(b, f, t)                                                                                                \
	CASE("no samples", b, f, t, 0, 4, 2, 8), CASE("one position", b, f, t, 3, 1, 2, 4),                            \
		CASE("odd sizes", b, f, t, 2, 13, 3, 5), CASE("heads of 64", b, f, t, 1, 70, 2, 64),                   \
		CASE("longer than a tile", b, f, t, 1, 150, 1, 32), CASE("heads of 16", b, f, t, 1, 50, 1, 16),        \
		CASE("heads of 128", b, f, t, 1, 90, 1, 128), CASE("heads of 24", b, f, t, 2, 65, 2, 24, 10),          \
		CASE("heads of 136", b, f, t, 1, 9, 1, 136), CASE("heads of 20", b, f, t, 1, 70, 3, 20),               \
		CASE("heads of 80", b, f, t, 1, 40, 2, 80), CASE("heads of 96", b, f, t, 2, 33, 1, 96),                \
		CASE("three tiles, heads of 64", b, f, t, 1, 130, 1, 64, 10),                                          \
		CASE("a window", b, f, t, 2, 90, 2, 16, 0, 7), CASE("a wide window", b, f, t, 1, 150, 1, 24, 10, 70),  \
		CASE("documents", b, f, t, 3, 70, 2, 32, 0, 0, 3),                                                     \
		CASE("long documents", b, f, t, 1, 150, 1, 64, 0, 0, 40),                                              \
		CASE("documents, window, dropout", b, f, t, 2, 100, 2, 20, 10, 9, 11),                                 \
		CASE("a soft cap", b, f, t, 2, 45, 2, 64, 0, 0, 0, 1),                                                 \
		CASE("a soft cap, all else", b, f, t, 2, 100, 2, 20, 10, 9, 11, 2),                                    \
		CASE("dropout", b, f, t, 2, 37, 2, 8, 10), CASE("dropout, heads of 32", b, f, t, 2, 37, 2, 32, 10),    \
	{                                                                                                              \
		NULL                                                                                                   \
	}

const struct op_case cases_attention[] = { SHAPES(build_attention_case, fill_attention, bound_attention_error) };
const struct op_case cases_attention_grad[] = { SHAPES(build_attention_grad_case, fill_attention_grad,
						       bound_attention_grad_error) };
