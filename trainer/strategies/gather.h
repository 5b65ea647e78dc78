/* gather.h: gathers sharded parameters where nodes read them. */
#ifndef DPT_STRATEGIES_GATHER_H
#define DPT_STRATEGIES_GATHER_H

#include "trainer/strategies/units.h"

/* Makes every node that reads a parameter read it from a flat tensor in which its unit is gathered: once a step and
 * kept until its end, or close to its use, some units ahead. Failures are the graph's. */
void gather_params(struct graph *g, const struct units *u, const struct strategy_opts *o);

#endif
