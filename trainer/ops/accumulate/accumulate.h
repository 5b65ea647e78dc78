/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate.h: sum over the micro-batches of an optimiser step: s = x at the first one (page.micro 0), later s = s +
 * x. in s, x; out s (the same tensor, updated). s outlives the micro-batches (LIFE_ACROSS). x and s are both f32 or
 * both f64. */
#ifndef DPT_OPS_ACCUMULATE_H
#define DPT_OPS_ACCUMULATE_H

#include "trainer/graph/graph.h"

/* For programs that run one of several micro-batches of a step, after the backward pass: sums every parameter's
 * gradient into "<gradient>.acc", which becomes the parameter's gradient, and the loss's results, which become g->loss.
 * A failure is stored in the graph. */
void accumulate_grads(struct graph *g);
void accumulate_loss(struct graph *g);

#endif
