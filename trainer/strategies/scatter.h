/* scatter.h: sums gradients over the ranks and scatters them to the owners of their parameters. */
#ifndef DPT_STRATEGIES_SCATTER_H
#define DPT_STRATEGIES_SCATTER_H

#include "trainer/strategies/units.h"

/* Makes a parameter's gradient the range of the sum that this rank owns of the parameter. Failures are the graph's. */
void scatter_grads(struct graph *g, const struct units *u, const struct strategy_opts *o);

/* Returns true if a step's micro-batches are accumulated in whole gradients before they are sent. */
bool scatter_keeps_whole(const struct strategy_opts *o);

#endif
