/* maxpool.h: maximum over kernel x kernel windows of x [N,H,W,C]; padding never wins; of equal values the first in
 * row-major order wins; NaN wins over everything.
 *   maxpool       in x        out y, index (u8: r * kernel + s of the winner; kernel <= 15)
 *   maxpool_grad  in dy, index out dx (attr.in_shape = x's shape) */
#ifndef DPT_OPS_MAXPOOL_H
#define DPT_OPS_MAXPOOL_H

#include "trainer/graph/graph.h"

struct maxpool_attr {
	int kernel, stride, pad;
	struct shape in_shape;
};

struct tensor *maxpool_add(struct graph *g, struct tensor *x, const struct maxpool_attr *attr);

#endif
