/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums_cases.c: test cases of partial sums. The harness's page has leaves 6 to 8 of 11 and the second
 * micro-batch: leaf 7, which is the sibling of leaf 6; leaf 8 follows the pair. tests/graph/leaves_test.c covers other
 * leaves. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/partial_sums/partial_sums.h"

/* size: elements of a term, f64 instead of f32. */
static struct tensor *add_terms_input(struct graph *g, const struct op_case *c)
{
	return case_input(g, "terms", c->size[1] ? DTYPE_F64 : DTYPE_F32, SHAPE(4 * c->size[0]));
}

static struct node *build_terms_push_case(struct graph *g, const struct op_case *c)
{
	const struct partial_sums_attr attr = { 4 };
	struct tensor *terms = add_terms_input(g, c), *x = case_input(g, "x", terms->dtype, SHAPE(c->size[0]));

	return graph_node(g, &(struct node_spec){ .op = &op_term_push, NODE_IN(terms, x), NODE_OUT(terms),
						  NODE_ATTR(attr) });
}

static struct node *build_terms_fold_case(struct graph *g, const struct op_case *c)
{
	return term_fold_add(g, add_terms_input(g, c), 4);
}

const struct op_case cases_term_push[] = {
	{ "no elements", .build = build_terms_push_case, .size = { 0, 0 } },
	{ "odd length", .build = build_terms_push_case, .size = { 1037, 0 } },
	{ "long", .build = build_terms_push_case, .size = { 70001, 0 } },
	{ "results", .build = build_terms_push_case, .size = { 5, 1 } },
	{ NULL },
};

const struct op_case cases_term_fold[] = {
	{ "no elements", .build = build_terms_fold_case, .size = { 0, 0 } },
	{ "odd length", .build = build_terms_fold_case, .size = { 1037, 0 } },
	{ "long", .build = build_terms_fold_case, .size = { 70001, 0 } },
	{ "results", .build = build_terms_fold_case, .size = { 5, 1 } },
	{ NULL },
};
