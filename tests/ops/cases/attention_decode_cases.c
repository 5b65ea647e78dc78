/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode_cases.c: test cases of attend. */
#include <math.h>

#include "trainer/ops/attention_decode/attention_decode.h"
#include "tests/ops/cases/cases.h"

#define ATTEND_ROUNDINGS 32

enum { R, P, H, D, FIRST, SHARED, WINDOW, CAP };

static struct node *build_attend_case(struct graph *g, const struct op_case *c)
{
	const int64_t *s = c->size;
	struct attention_decode_attr attr = { s[H], s[SHARED], s[WINDOW], s[P], (double)s[CAP] };
	struct tensor *keys = case_input(g, "keys", DTYPE_F32, SHAPE(s[P], s[SHARED] * s[D]));
	struct tensor *values = case_input(g, "values", DTYPE_F32, SHAPE(s[P], s[SHARED] * s[D]));

	return graph_node(g, &(struct node_spec){ .op = &op_attention_decode,
						  NODE_OUT(NULL, keys, values),
						  NODE_ATTR(attr),
						  NODE_IN(case_input(g, "qkv", DTYPE_F32, SHAPE(s[R], 3 * s[H] * s[D])),
							  keys, values, case_input(g, "first", DTYPE_I32, SHAPE(1))) });
}

static void fill_attend_case(const struct op_case *c, struct case_values *v)
{
	v->in[3][0] = (double)c->size[FIRST];
}

/* Keys and values are copied exactly. y is a weighted mean of values; its error follows from that of the scores. */
static double bound_attend_error(const struct case_values *v, int k, double *terms)
{
	const struct attention_decode_sizes z = attention_decode_sizes(v->node);
	int64_t rows = z.rows, c = z.c, first = (int64_t)v->in[3][0];
	double most = 0;

	for (int64_t i = 0; i < case_count(v->node->in[1]); i++)
		most = fmax(most, fabs(v->out[1][i]));
	for (int64_t r = 0; r < rows && k == 0; r++)
		for (int64_t i = 0; i < c; i++) {
			double largest = 0, q = 0;

			for (int64_t j = 0; j <= first + r; j++)
				largest =
					fmax(largest, fabs(v->out[2][j * z.kept + i / z.d / z.group * z.d + i % z.d]));
			for (int64_t e = 0; e < c; e++)
				q += fabs(v->in[0][r * 3 * c + e]);
			terms[r * c + i] = largest * (1 + q * most);
		}
	return k ? 0 : ATTEND_ROUNDINGS + (double)(first + rows);
}

const struct op_case cases_attention_decode[] = {
	{ "first position", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 1, 5, 2, 4, 0, 2 } },
	{ "a later one", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 1, 40, 3, 5, 37, 3 } },
	{ "several at once", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 7, 64, 2, 16, 13, 2 } },
	{ "the last ones", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 16, 50, 4, 20, 34, 4 } },
	{ "shared heads", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 5, 50, 6, 20, 20, 2 } },
	{ "a window", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 9, 50, 4, 16, 3, 1, 7 } },
	{ "a soft cap", .build = build_attend_case, .fill = fill_attend_case, .bound = bound_attend_error,
	  .size = { 9, 50, 4, 16, 3, 2, 0, 1 } },
	{ NULL },
};
