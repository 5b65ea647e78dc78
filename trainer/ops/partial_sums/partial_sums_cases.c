/* partial_sums_cases.c: the harness's page has leaves 6 to 8 of 11 and is of the second micro-batch: leaf 7, which makes a
 * pair with leaf 6; behind the pair stands leaf 8. Other leaves: tests/graph/leaves_test.c. */
#include "trainer/ops/cases.h"
#include "trainer/ops/partial_sums/partial_sums.h"

/* size: elements of a term, f64 instead of f32. */
static struct tensor *terms_input(struct graph *g, const struct op_case *c)
{
	return case_input(g, "terms", c->size[1] ? DTYPE_F64 : DTYPE_F32, SHAPE(4 * c->size[0]));
}

static struct node *build_push(struct graph *g, const struct op_case *c)
{
	const struct partial_sums_attr attr = { 4 };
	struct tensor *terms = terms_input(g, c), *x = case_input(g, "x", terms->dtype, SHAPE(c->size[0]));

	return graph_node(g, &(struct node_spec){ .op = &op_term_push, NODE_IN(terms, x), NODE_OUT(terms),
						  NODE_ATTR(attr) });
}

static struct node *build_fold(struct graph *g, const struct op_case *c)
{
	return term_fold_add(g, terms_input(g, c), 4);
}

const struct op_case cases_term_push[] = {
	{ "no elements", .build = build_push, .size = { 0, 0 } },
	{ "odd length", .build = build_push, .size = { 1037, 0 } },
	{ "long", .build = build_push, .size = { 70001, 0 } },
	{ "results", .build = build_push, .size = { 5, 1 } },
	{ NULL },
};

const struct op_case cases_term_fold[] = {
	{ "no elements", .build = build_fold, .size = { 0, 0 } },
	{ "odd length", .build = build_fold, .size = { 1037, 0 } },
	{ "long", .build = build_fold, .size = { 70001, 0 } },
	{ "results", .build = build_fold, .size = { 5, 1 } },
	{ NULL },
};
