/* SPDX-License-Identifier: Apache-2.0 */
/* copy_cases.c: test cases of copy. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/copy/copy.h"

/* size: rows, columns. */
static struct node *build_copy_case(struct graph *g, const struct op_case *c)
{
	struct tensor *x = case_input(g, "x", DTYPE_F32, SHAPE(c->size[0], c->size[1]));

	return copy_add(g, x, NULL, &(struct copy_attr){ .file = false });
}

const struct op_case cases_copy[] = {
	{ "no elements", .build = build_copy_case, .exact = true, .size = { 0, 3 } },
	{ "odd", .build = build_copy_case, .exact = true, .size = { 7, 31 } },
	{ "long", .build = build_copy_case, .exact = true, .size = { 70, 1031 } },
	{ NULL },
};
