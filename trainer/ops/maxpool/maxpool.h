/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool.h: maximum over kernel x kernel windows of x [N,H,W,C]. Padding is never the maximum; of equal values the
 * first in row-major order is chosen; NaN takes precedence over all values.
 *   maxpool       in x         out y, index (u8: r * kernel + s of the maximum; kernel <= 15)
 *   maxpool_grad  in dy, index out dx (attr.in_shape = shape of x) */
#ifndef DPT_OPS_MAXPOOL_H
#define DPT_OPS_MAXPOOL_H

#include "trainer/graph/graph.h"

struct maxpool_attr {
	int kernel, stride, pad;
	struct shape in_shape;
};

struct tensor *maxpool_add(struct graph *g, struct tensor *x, const struct maxpool_attr *attr);

#endif
