/* SPDX-License-Identifier: Apache-2.0 */
/* ema.h: exponential moving average of a parameter or statistic: ema = decay ema + (1 - decay) x; the first update
 * copies x, as in torchvision. in x, ema, step out ema (the same tensor, updated). step is guard's output: a skipped
 * step changes nothing, unless there was no update yet. With `every` > 1 every N-th step of an epoch updates it,
 * beginning with the first one. */
#ifndef DPT_OPS_EMA_H
#define DPT_OPS_EMA_H

#include "trainer/graph/host_device.h"
#include "trainer/ops/step_guard/step_guard.h"

struct ema_attr {
	double decay;
	int64_t every; /* steps; 0 like 1 */
};

/* Adds "<x>.ema" and its update. */
struct node *ema_add(struct graph *g, struct tensor *x, struct tensor *step, const struct ema_attr *attr);

/* The weight of the old average in one update, the same on every backend. */
HOST_DEVICE_INLINE double ema_keep(const struct ema_attr *a, const double *step, int64_t epoch_step)
{
	if (step[STEP_GUARD_UPDATES] <= 1)
		return 0;
	return step[STEP_GUARD_SKIP] != 0 || (a->every > 1 && epoch_step % a->every != 0) ? 1 : a->decay;
}

#endif
