/* scatter.h: gradients, summed over the ranks, to those that hold their parameters. */
#ifndef DPT_STRATEGIES_SCATTER_H
#define DPT_STRATEGIES_SCATTER_H

#include "trainer/strategies/units.h"

/* A parameter's gradient becomes the range of the sum that this rank holds of the parameter. Failures are the graph's.
 */
void scatter_grads(struct graph *g, const struct units *u, const struct strategy_opts *o);

/* Whether the gradients of a step's micro-batches are added where they are whole, before they are sent. */
bool scatter_keeps_whole(const struct strategy_opts *o);

#endif
