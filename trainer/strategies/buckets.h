/* buckets.h: sums gradients in buckets over a group whose ranks have them whole. */
#ifndef DPT_STRATEGIES_BUCKETS_H
#define DPT_STRATEGIES_BUCKETS_H

#include "trainer/strategies/strategy.h"

/* Sums the gradients of all parameters; in a program before a step's last micro-batch it only places them. Returns 0,
 * or the graph's failure in err. */
int buckets_sum(struct graph *g, const struct strategy_opts *o, enum group group, struct err *err);

#endif
