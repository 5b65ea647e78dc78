/* ema_math.h: the weight of the old average in one update, the same on every backend. */
#ifndef DPT_OPS_EMA_MATH_H
#define DPT_OPS_EMA_MATH_H

#include "trainer/graph/host_device.h"
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/step_guard/step_guard.h"

HOST_DEVICE_INLINE double ema_keep(const struct ema_attr *a, const double *step)
{
	if (step[STEP_GUARD_UPDATES] <= 1)
		return 0;
	return step[STEP_GUARD_SKIP] != 0 ? 1 : a->decay;
}

#endif
