/* liveness.h: from when to when each tensor of one scheduled program needs its memory, and which tensors share it. Used by
 * plan.c alone; separate because it is the part that knows streams, views and in-place rules. */
#ifndef DPT_GRAPH_LIVENESS_H
#define DPT_GRAPH_LIVENESS_H

#include "trainer/graph/plan.h"

struct live_buffer {
	const struct tensor *tensor; /* the first one to use it; NULL: workspace of node */
	struct node *node;
	int slot;
	size_t bytes;
	int first, last; /* moments: 2 i before schedule item i, 2 i + 1 while it runs; 2 n: until the end */
	size_t offset;   /* filled by plan.c: in the slab of its space */
};

struct live {
	struct live_buffer *buffers;
	int n;
	int *of; /* [slot * n_tensors + id] → index of its buffer, -1 when not used or persistent */
	int n_tensors;
};

int live_make(struct live *ret, const struct plan_program *p, struct err *err);
void live_done(struct live *l);

enum space live_space(const struct live_buffer *b);

/* Buffer of a tensor in a slot; NULL when it has none. Views are asked for through their base. */
struct live_buffer *live_get(const struct live *l, const struct tensor *t, int slot);

#endif
