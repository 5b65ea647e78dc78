/* SPDX-License-Identifier: Apache-2.0 */
/* scale.h: y = factor x; in x out y. It is its own gradient. */
#ifndef DPT_OPS_SCALE_H
#define DPT_OPS_SCALE_H

#include "trainer/graph/graph.h"

struct scale_attr {
	double factor;
};

struct tensor *scale_add(struct graph *g, struct tensor *x, double factor);

#endif
