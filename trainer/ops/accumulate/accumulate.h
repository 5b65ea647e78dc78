/* accumulate.h: sum over the micro-batches of an optimiser step: at the first one (page.micro 0) s = x, later s = s +
 * x. in s, x; out s (the same tensor, updated). s outlives the micro-batches (LIFE_ACROSS); x may be f32 or f64, as
 * s. */
#ifndef DPT_OPS_ACCUMULATE_H
#define DPT_OPS_ACCUMULATE_H

#include "trainer/graph/graph.h"

/* Of programs that are one of several micro-batches of a step, behind the backward pass: the sum of every parameter's
 * gradient, "<gradient>.acc", which becomes the parameter's gradient; of the loss's results, which become g->loss.
 * Failures are the graph's. */
void accumulate_grads(struct graph *g);
void accumulate_loss(struct graph *g);

#endif
