/* SPDX-License-Identifier: Apache-2.0 */
/* relu.h: y = max(x, 0); NaN stays NaN. relu: in x out y. relu_grad: in dy, y out dx = y > 0 ? dy : 0. */
#ifndef DPT_OPS_RELU_H
#define DPT_OPS_RELU_H

#include "trainer/graph/graph.h"

struct tensor *relu_add(struct graph *g, struct tensor *x);

#endif
