/* bn_fuse.h: fusion rules of the batch norm ops. Each returns true if it changed the graph. */
#ifndef DPT_OPS_BN_FUSE_H
#define DPT_OPS_BN_FUSE_H

#include "trainer/graph/graph.h"

bool bn_fuse_apply(struct graph *g, struct node *n);      /* a following add; a following ReLU and its gradient */
bool bn_fuse_infer(struct graph *g, struct node *n);      /* the same without gradients */
bool bn_fuse_grad_stats(struct graph *g, struct node *n); /* the sum of two gradients that is its input */

#endif
