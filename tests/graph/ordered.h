/* SPDX-License-Identifier: Apache-2.0 */
/* ordered.h: whether streams and waits order all accesses of a program to its memory: any two items whose bytes overlap
 * (operands, views, workspaces, fed inputs), one of them a write. Uses only the schedule and the plan: neither the pass
 * that placed the waits nor the lifetimes that the plan is based on. */
#ifndef DPT_TESTS_ORDERED_H
#define DPT_TESTS_ORDERED_H

#include "trainer/graph/plan.h"

struct access { /* bytes [from, to) of a slab */
	enum space space;
	size_t from, to;
	bool written;
};

/* The accesses of one item; ret has room for accesses_most of the graph. Empty ones are omitted. */
int accesses_of(const struct graph *g, const struct schedule_item *it, struct access *ret);
int accesses_most(const struct graph *g);

bool accesses_conflict(const struct access *a, const struct access *b);

struct unordered { /* unordered items of a schedule that access the same bytes; first < second */
	int first, second;
	struct access at; /* of the second */
};

/* Whether there is such a pair; fails the running test when out of memory. */
bool ordered_fails(const struct graph *g, const struct schedule *s, struct unordered *ret);

#endif
