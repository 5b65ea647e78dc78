/* norm_exact.h: exact sums of squares as nodes: the two functions of norm.h for graphs with graph->exact. */
#ifndef DPT_OPS_NORM_EXACT_NODES_H
#define DPT_OPS_NORM_EXACT_NODES_H

#include "trainer/graph/graph.h"

/* Adds f64 [1] named `name`: the sum of squares of the whole tensor, over the ranks that hold its ranges. */
struct tensor *exact_sumsq(struct graph *g, struct tensor *t, const char *name);

/* Stores the exact sums of all parameters' gradients in sums[] (with room for one per tensor), reduced over ranks where
 * they are sharded or distributed over stages. Returns the number of sums that the norm combines. */
int exact_collect(struct graph *g, struct tensor **sums, bool pipeline);

#endif
