/* SPDX-License-Identifier: Apache-2.0 */
/* add.h: y = a + b of equal shapes; in a, b out y. Also sums several gradients of one tensor. */
#ifndef DPT_OPS_ADD_H
#define DPT_OPS_ADD_H

#include "trainer/graph/graph.h"

struct tensor *add_add(struct graph *g, struct tensor *a, struct tensor *b);

#endif
