/* ema.h: exponential moving average of a parameter or statistic: ema = decay ema + (1 - decay) x; the first update
 * copies x, as in torchvision. in x, ema, step out ema (the same tensor, updated). step is guard's output: a skipped
 * step changes nothing, unless there was no update yet. */
#ifndef DPT_OPS_EMA_H
#define DPT_OPS_EMA_H

#include "trainer/graph/graph.h"

struct ema_attr {
	double decay;
};

/* Adds "<x>.ema" and its update. */
struct node *ema_add(struct graph *g, struct tensor *x, struct tensor *step, const struct ema_attr *attr);

#endif
