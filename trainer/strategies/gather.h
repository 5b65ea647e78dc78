/* gather.h: parameters that ranks hold ranges of, brought together where nodes read them. */
#ifndef DPT_STRATEGIES_GATHER_H
#define DPT_STRATEGIES_GATHER_H

#include "trainer/strategies/units.h"

/* Every node that reads a parameter reads it from a flat tensor in which its unit is gathered. Kept: once a step, until
 * its end; else beside its use, some units ahead. Failures are the graph's. */
void gather_params(struct graph *g, const struct units *u, const struct strategy_opts *o);

#endif
