/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h: from when to when each tensor of one scheduled program needs its memory, and which tensors share memory.
 * Only plan.c uses it; it is separate because it knows streams, views and in-place rules. */
#ifndef DPT_GRAPH_LIVENESS_H
#define DPT_GRAPH_LIVENESS_H

#include "trainer/graph/plan.h"

struct live_buffer {
	const struct tensor *tensor; /* first tensor that uses it; NULL: workspace of node */
	struct node *node;
	int slot;
	size_t bytes;
	int first, last; /* moments: 2 i before schedule item i, 2 i + 1 while it runs; 2 n: until the end */
	size_t offset;	 /* set by plan.c: offset in the slab of its space */
};

struct liveness {
	struct live_buffer *buffers;
	int n;
	int *of; /* [slot * n_tensors + id]: index of its buffer, -1 if unused or persistent */
	int n_tensors;
};

void live_make(struct liveness *ret, const struct plan_program *p);
void live_done(struct liveness *l);

enum space live_space(const struct live_buffer *b);

/* The buffer of a tensor in a slot; that of its base for a view. NULL if it has none. */
struct live_buffer *live_get(const struct liveness *l, const struct tensor *t, int slot);

#endif
