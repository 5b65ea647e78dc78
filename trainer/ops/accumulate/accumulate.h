/* accumulate.h: sum over the micro-batches of an optimiser step: at the first one (page.micro 0) s = x, later s = s +
 * x. in s, x; out s (the same tensor, updated). s outlives the micro-batches (LIFE_ACROSS); x may be f32 or f64, as
 * s. */
#ifndef DPT_OPS_ACCUMULATE_H
#define DPT_OPS_ACCUMULATE_H

#include "trainer/graph/graph.h"

/* Sums of every parameter's gradient, "<param>.grad.acc", which becomes the parameter's gradient, and of the loss's
 * results, which become g->loss: for programs that are one of several micro-batches of a step. Runs behind the backward
 * pass and before strategies. Returns 0 or the graph's error code. */
int accumulate_add_all(struct graph *g);

#endif
