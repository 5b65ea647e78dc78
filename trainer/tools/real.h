/* real.h: numbers in JSON, which has neither NaN nor infinity. */
#ifndef DPT_TOOLS_REAL_H
#define DPT_TOOLS_REAL_H

#include <math.h>

#include <jansson.h>

static inline json_t *real_or_null(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

#endif
