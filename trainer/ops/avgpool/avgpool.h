/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool.h: global average over H and W: x [N,H,W,C] → y [N,C]. avgpool: in x out y. avgpool_grad: in dy out dx
 * (attr.in_shape = shape of x). */
#ifndef DPT_OPS_AVGPOOL_H
#define DPT_OPS_AVGPOOL_H

#include "trainer/graph/graph.h"

struct avgpool_attr {
	struct shape in_shape;
};

struct tensor *avgpool_add(struct graph *g, struct tensor *x);

#endif
