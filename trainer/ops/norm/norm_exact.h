/* norm_exact.h: exact sums of squares as nodes: norm.h's two functions for graphs that want them. */
#ifndef DPT_OPS_NORM_EXACT_NODES_H
#define DPT_OPS_NORM_EXACT_NODES_H

#include "trainer/graph/graph.h"

/* f64 [1] named `name`: the sum of squares of the whole tensor, over the ranks that hold ranges of it. */
struct tensor *exact_sumsq(struct graph *g, struct tensor *t, const char *name);

/* The exact sums of the gradients of all parameters into sums[] (room for one of each), added up over the ranks where
 * these hold ranges or stages; returns how many the norm is of. */
int exact_collect(struct graph *g, struct tensor **sums, bool pipeline);

#endif
