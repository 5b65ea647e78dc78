/* lars_math.h: the trust ratio, the same on every backend. */
#ifndef DPT_OPS_LARS_MATH_H
#define DPT_OPS_LARS_MATH_H

#include <math.h>

#include "trainer/graph/host_device.h"
#include "trainer/ops/lars/lars.h"

/* psum, gsum: NULL gives ratio 1. factor: scales the gradient. */
HOST_DEVICE_INLINE double lars_ratio(const struct lars_attr *a, const double *psum, const double *gsum, double factor)
{
	double p = psum ? sqrt(*psum) : 0, g = gsum ? sqrt(*gsum) * factor : 0;

	return p > 0 && g > 0 ? a->trust * p / (g + a->weight_decay * p) : 1;
}

#endif
