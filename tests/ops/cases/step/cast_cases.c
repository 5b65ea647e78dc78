/* SPDX-License-Identifier: Apache-2.0 */
/* cast_cases.c: test cases of cast between the two types of a run. */
#include <math.h>

#include "tests/ops/cases/cases.h"
#include "trainer/ops/cast/cast.h"

/* size: rows, columns, type from, type to. */
static struct node *build_cast_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);
	struct tensor *x = case_input(g, "x", (enum dtype)c->size[2], shape);
	struct tensor *y = cast_add(g, x, (enum dtype)c->size[3]);

	return y ? y->producer : NULL;
}

/* Ties to even, subnormals, the edge of overflow. */
static void fill_cast_edges(const struct op_case *c, struct case_values *v)
{
	static const double values[] = { NAN,	     INFINITY,	      -INFINITY, -0.0,
					 1.00390625, 1.01171875,      3.4e38,	 0x1.fffffep127,
					 0x1.ffp127, -0x1.feffffp127, 0x1p-126,	 1.0078125 };

	(void)c;
	for (int i = 0; i < 12; i++)
		v->in[0][i] = values[i];
}

const struct op_case cases_cast[] = {
	{ "no elements", .build = build_cast_case, .exact = true, .size = { 0, 3, DTYPE_F32, DTYPE_BF16 } },
	{ "f32 to bf16, odd", .build = build_cast_case, .exact = true, .size = { 7, 31, DTYPE_F32, DTYPE_BF16 } },
	{ "f32 to bf16, special", .build = build_cast_case, .fill = fill_cast_edges, .exact = true,
	  .size = { 3, 11, DTYPE_F32, DTYPE_BF16 } },
	{ "bf16 to f32, odd", .build = build_cast_case, .exact = true, .size = { 7, 31, DTYPE_BF16, DTYPE_F32 } },
	{ "bf16 to f32, long", .build = build_cast_case, .exact = true, .size = { 70, 1031, DTYPE_BF16, DTYPE_F32 } },
	{ NULL },
};
