/* ema_math.h: how much of the average one update keeps, the same on every host backend. */
#ifndef DPT_OPS_EMA_MATH_H
#define DPT_OPS_EMA_MATH_H

#include "trainer/graph/both.h"
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/guard/guard.h"

BOTH_INLINE double ema_keep(const struct ema_attr *a, const double *step)
{
	if (step[GUARD_UPDATES] <= 1)
		return 0;
	return step[GUARD_SKIP] != 0 ? 1 : a->decay;
}

#endif
