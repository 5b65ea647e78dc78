/* strategy_sums.h: sums along the tree of leaves (graph/leaves.h) in programs, of whatever every leaf has a term of: bits that
 * do not depend on ranks. Asked for by room > 0 in the options. Failures are the graph's. */
#ifndef DPT_STRATEGIES_STRATEGY_SUMS_H
#define DPT_STRATEGIES_STRATEGY_SUMS_H

#include "trainer/strategies/strategy.h"

/* The parts that leaves are dealt into: ranks, or pipelines, whose stages all have the same ones. */
int terms_parts(const struct strategy_opts *o);

/* Whether a rank keeps terms at all: else each has one at most, which lies where it was made. */
bool terms_wanted(const struct strategy_opts *o);

/* The terms that t, complete behind position `at`, is put into there; *at moves on. */
struct tensor *terms_put(struct graph *g, struct tensor *t, const struct strategy_opts *o, int *at);

/* Adds all of them, of all ranks, at position `at`. */
void terms_add_up(struct graph *g, struct tensor *terms, const struct strategy_opts *o, int at);

/* Where the sum of a gradient is left that is, or lies in, what was put into terms. */
struct tensor *terms_gradient(struct graph *g, struct tensor *terms, const struct tensor *grad);

/* The loss's sums: the step's last program leaves them in STRATEGY_RESULT_SUM. */
void terms_of_results(struct graph *g, const struct strategy_opts *o);

/* The sums behind running statistics: these move once a step, by those of the whole global batch. */
void terms_of_statistics(struct graph *g, const struct strategy_opts *o);

/* The gradients of parameters, each by itself. */
void terms_of_gradients(struct graph *g, const struct strategy_opts *o);

#endif
