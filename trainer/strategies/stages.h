/* stages.h: the stages of a pipeline: assigns every node of a model to one. A model is cut between its blocks; the
 * first stage has what comes before them, the last stage what comes after them. */
#ifndef DPT_STRATEGIES_STAGES_H
#define DPT_STRATEGIES_STAGES_H

#include "trainer/strategies/strategy.h"

#define STAGES_MAX 64
#define STAGE_ANY (-1) /* casts of parameters: wherever they are read */

struct stages {
	int n;
	int first[STAGES_MAX + 1]; /* first[i] .. first[i + 1] - 1: blocks of stage i, from 1 */
};

/* Cuts by o->partition (blocks of each stage) or, without one, by the work of the blocks: the stage with the most work
 * has as little as possible. Work: floating-point operations of the forward pass, and the cost of its operands' bytes.
 * Gives equal results for equal models. ERR_USAGE when there are fewer blocks than stages, or the partition does not
 * match. */
int stages_cut(struct stages *ret, const struct graph *model, const struct strategy_opts *o, struct err *err);

/* Sets ret[id]: the stage of each node of a training or evaluation graph, or STAGE_ANY. */
void stages_of_nodes(int *ret, const struct graph *g, const struct stages *s);

#endif
