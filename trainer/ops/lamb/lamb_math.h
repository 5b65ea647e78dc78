/* lamb_math.h: the trust ratio, the same on every backend. */
#ifndef DPT_OPS_LAMB_MATH_H
#define DPT_OPS_LAMB_MATH_H

#include <math.h>

#include "trainer/graph/host_device.h"

/* psum, usum: NULL gives ratio 1. */
HOST_DEVICE_INLINE double lamb_ratio(const double *psum, const double *usum)
{
	return psum && usum && *psum > 0 && *usum > 0 ? sqrt(*psum / *usum) : 1;
}

#endif
