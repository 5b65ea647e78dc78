/* copy.h: y = x in another space: to where it is kept between uses, or back beside them. in x out y. Both have the same
 * type and shape. */
#ifndef DPT_OPS_COPY_H
#define DPT_OPS_COPY_H

#include "trainer/graph/graph.h"

struct copy_attr {
	bool file; /* SPACE_OFFLOAD is a mapped file: the pages that were copied from or to it are given back */
};

/* y: NULL makes it, of kind TENSOR_ACT, in x's space. NULL once the graph failed. */
struct node *copy_add(struct graph *g, struct tensor *x, struct tensor *y, const struct copy_attr *attr);

#endif
