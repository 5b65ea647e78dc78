/* share.h: shared by strategies with several ranks: sums over the ranks other than those of gradients. Failures are the
 * graph's. */
#ifndef DPT_STRATEGIES_SHARE_H
#define DPT_STRATEGIES_SHARE_H

#include "trainer/strategies/strategy.h"

/* Returns 0, or the graph's failure in err. */
int share_failed(const struct graph *g, struct err *err);

/* Computes batch norm over the samples of all ranks: the sums of the statistics, and of their gradient, are summed over
 * the ranks before use. Parameter gradients use the rank's own sums, because they are summed with the others. */
int share_batch_norms(struct graph *g, struct err *err);

/* Shares the loss's sums, and a vote of the host that all ranks receive together (a request to stop). In a program
 * before a step's last micro-batch, adds only what the later ones need. */
int share_results(struct graph *g, const struct strategy_opts *o, struct err *err);

/* Prepares a training graph whose micro-batches run in one schedule: sets every node's part, and accumulates every
 * gradient, and the loss where there is one, over the micro-batches; not where they are leaves (strategy_sums.h adds
 * those). */
void share_micros(struct graph *g, const struct strategy_opts *o);

/* Makes the gradient a view of flat at that byte, which the sum of that number covers. */
void share_place(struct tensor *grad, struct tensor *flat, size_t at, int bucket);

/* Makes the gradient to which the producer of such a view adds in place the same view, where it has no later reader: a
 * tied table has one gradient, not two. */
void share_place_of_term(struct graph *g, const struct tensor *grad);

/* Returns the samples of each of that many equal parts, or of more parts where that does not divide them: the largest
 * size that does. Where micro-batches are leaves: the samples of a leaf. */
int64_t share_part(const struct strategy_opts *o, int64_t samples, int parts);

#endif
