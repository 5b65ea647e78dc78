/* share.h: what strategies with several ranks have in common: sums over the ranks beside those of gradients. Failures
 * are the graph's. */
#ifndef DPT_STRATEGIES_SHARE_H
#define DPT_STRATEGIES_SHARE_H

#include "trainer/strategies/strategy.h"

/* 0, or the graph's failure in err. */
int share_failed(const struct graph *g, struct err *err);

/* Batch norm over the samples of all ranks: the sums behind the statistics, and behind their gradient, are summed over
 * the ranks before they are used. Parameter gradients take the rank's own sums: they are summed with the others. */
int share_batch_norms(struct graph *g, struct err *err);

/* The loss's sums, and a vote of the host that all ranks hear together (somebody was asked to stop); of a program that
 * more micro-batches follow only what they need of this one. */
int share_results(struct graph *g, const struct strategy_opts *o, struct err *err);

/* Of a training graph whose micro-batches are turns of one schedule: every node's part, and the sums of every gradient,
 * and of the loss where there is one, over the micro-batches; not where these are leaves (strategy_sums.h adds them). */
void share_micros(struct graph *g, const struct strategy_opts *o);

/* The gradient becomes the view of flat at that byte, on the way to the sum of that number. */
void share_place(struct tensor *grad, struct tensor *flat, size_t at, int bucket);

/* What the maker of a gradient that is such a view adds to in place becomes the same view, where nothing else reads it
 * afterwards: a tied table has one gradient, not two. */
void share_place_of_term(struct graph *g, const struct tensor *grad);

/* Samples of each of so many equal parts, or of more where that does not divide them: the largest size that does; of a
 * leaf, where micro-batches are leaves. */
int64_t share_part(const struct strategy_opts *o, int64_t samples, int parts);

#endif
