/* ema.h: exponential moving average of a parameter or statistic: ema = decay ema + (1 - decay) x; the first update
 * copies x, as in torchvision. in x, ema, step out ema (the same tensor, updated). step is guard's output: a skipped
 * step changes nothing, unless there was no update yet. */
#ifndef DPT_OPS_EMA_H
#define DPT_OPS_EMA_H

#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"
#include "trainer/ops/step_guard/step_guard.h"

struct ema_attr {
	double decay;
};

/* Adds "<x>.ema" and its update. */
struct node *ema_add(struct graph *g, struct tensor *x, struct tensor *step, const struct ema_attr *attr);

/* The weight of the old average in one update, the same on every backend. */
HOST_DEVICE_INLINE double ema_keep(const struct ema_attr *a, const double *step)
{
	if (step[STEP_GUARD_UPDATES] <= 1)
		return 0;
	return step[STEP_GUARD_SKIP] != 0 ? 1 : a->decay;
}

#endif
