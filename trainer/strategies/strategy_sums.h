/* strategy_sums.h: sums along the reduction tree (graph/leaves.h) in programs, of values that every leaf has: their
 * bits do not depend on the ranks. Enabled by room > 0 in the options. Failures are the graph's. */
#ifndef DPT_STRATEGIES_STRATEGY_SUMS_H
#define DPT_STRATEGIES_STRATEGY_SUMS_H

#include "trainer/strategies/strategy.h"

/* Returns the number of parts that share the leaves: ranks, or pipelines, whose stages all have the same leaves. */
int terms_parts(const struct strategy_opts *o);

/* Returns true if ranks keep terms; else each rank has at most one, which stays where it was made. */
bool terms_wanted(const struct strategy_opts *o);

/* Stores t, complete after position `at`, into terms; returns them. Advances *at. */
struct tensor *terms_put(struct graph *g, struct tensor *t, const struct strategy_opts *o, int *at);

/* Adds the terms of all ranks at position `at`. */
void terms_add_up(struct graph *g, struct tensor *terms, const struct strategy_opts *o, int at);

/* Returns the view of the terms' sum for a gradient that is, or is part of, the tensor stored into the terms. */
struct tensor *terms_gradient(struct graph *g, struct tensor *terms, const struct tensor *grad);

/* Sums the loss: the step's last program stores it in STRATEGY_RESULT_SUM. */
void terms_of_results(struct graph *g, const struct strategy_opts *o);

/* Sums the inputs of running statistics, which are updated once a step, from the whole global batch. */
void terms_of_statistics(struct graph *g, const struct strategy_opts *o);

/* Sums the gradients of parameters, each in its own terms. */
void terms_of_gradients(struct graph *g, const struct strategy_opts *o);

#endif
