/* copy.h: y = x in another space: swaps a tensor out between uses, or back in. in x out y, of the same type and
 * shape. */
#ifndef DPT_OPS_COPY_H
#define DPT_OPS_COPY_H

#include "trainer/graph/graph.h"

struct copy_attr {
	bool file; /* SPACE_OFFLOAD is a mapped file: its pages are released after they were copied */
};

/* y: NULL creates it with kind TENSOR_ACT in the space of x. Returns NULL once the graph failed. */
struct node *copy_add(struct graph *g, struct tensor *x, struct tensor *y, const struct copy_attr *attr);

#endif
