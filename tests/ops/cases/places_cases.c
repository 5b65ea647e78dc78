/* SPDX-License-Identifier: Apache-2.0 */
/* places_cases.c: test cases of places. */
#include "tests/ops/cases/cases.h"
#include "trainer/ops/places/places.h"

enum { N, T, EVERY };

static struct node *build_places_case(struct graph *g, const struct op_case *c)
{
	return places_add(g, case_input(g, "marked", DTYPE_I32, SHAPE(c->size[N], c->size[T])), "places").places
		       ? g->nodes[g->n_nodes - 1]
		       : NULL;
}

/* Documents begin at every multiple of EVERY, whatever the sample. */
static void fill_places_case(const struct op_case *c, struct case_values *v)
{
	for (int64_t i = 0; i < c->size[N] * c->size[T]; i++)
		v->in[0][i] = (double)(i % c->size[EVERY] ? i % 97 : DOCUMENT_MARK(i % 97));
}

const struct op_case cases_places[] = {
	{ "one sample", .build = build_places_case, .fill = fill_places_case, .exact = true, .size = { 1, 7, 3 } },
	{ "several", .build = build_places_case, .fill = fill_places_case, .exact = true, .size = { 5, 70, 9 } },
	{ "a token each", .build = build_places_case, .fill = fill_places_case, .exact = true, .size = { 2, 5, 1 } },
	{ "one document", .build = build_places_case, .fill = fill_places_case, .exact = true, .size = { 3, 33, 99 } },
	{ NULL },
};
