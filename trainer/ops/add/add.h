/* add.h: y = a + b of equal shapes; in a, b out y. Also the sum of gradients that meet. */
#ifndef DPT_OPS_ADD_H
#define DPT_OPS_ADD_H

#include "trainer/graph/graph.h"

struct tensor *add_add(struct graph *g, struct tensor *a, struct tensor *b);

#endif
