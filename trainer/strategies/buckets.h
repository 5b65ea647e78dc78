/* buckets.h: gradients that every rank of a group has whole, summed over it in buckets. */
#ifndef DPT_STRATEGIES_BUCKETS_H
#define DPT_STRATEGIES_BUCKETS_H

#include "trainer/strategies/strategy.h"

/* Of all parameters' gradients; of a program that more micro-batches follow only the places. 0, or the graph's failure
 * in err. */
int buckets_sum(struct graph *g, const struct strategy_opts *o, enum group group, struct err *err);

#endif
