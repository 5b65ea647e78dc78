/* stages.h: the stages of a pipeline: which of them every node of a model belongs to. A model is cut between its
 * blocks; what stands before them goes with the first stage, what stands behind them with the last. */
#ifndef DPT_STRATEGIES_STAGES_H
#define DPT_STRATEGIES_STAGES_H

#include "trainer/strategies/strategy.h"

#define STAGES_MAX 64
#define STAGE_ANY (-1) /* of casts of parameters: wherever they are read */

struct stages {
	int n;
	int first[STAGES_MAX + 1]; /* first[i] .. first[i + 1] - 1: blocks of stage i, from 1 */
};

/* Where o->partition (blocks of each stage) or, without one, the work of each block says: the stage with most of it has
 * as little as can be. Work: floating-point operations of the forward pass, and what its operands' bytes cost beside
 * them. Answers alike for equal models. ERR_USAGE when there are fewer blocks than stages, or the partition does not
 * fit. */
int stages_cut(struct stages *ret, const struct graph *model, const struct strategy_opts *o, struct err *err);

/* ret[id]: the stage of each node of a graph of training or evaluation, or STAGE_ANY. */
void stages_of_nodes(int *ret, const struct graph *g, const struct stages *s);

#endif
