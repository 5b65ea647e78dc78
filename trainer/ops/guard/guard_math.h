/* guard_math.h: the decision of guard.h; a handful of numbers, the same on every host backend. */
#ifndef DPT_OPS_GUARD_MATH_H
#define DPT_OPS_GUARD_MATH_H

#include <math.h>
#include <stdint.h>

#include "trainer/graph/kernel.h"
#include "trainer/ops/guard/guard.h"

static inline bool guard_finite(const double *v, int64_t n)
{
	for (int64_t i = 0; v && i < n; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

static inline void guard_count(double *state, bool good)
{
	state[GUARD_STATE_UPDATES] += good;
	state[GUARD_STATE_SKIPPED] += !good;
	state[GUARD_STATE_ROW] = good ? 0 : state[GUARD_STATE_ROW] + 1;
}

static inline void guard_scale(double *state, double scale, bool good)
{
	state[GUARD_STATE_CLEAN] = good ? state[GUARD_STATE_CLEAN] + 1 : 0;
	if (!good)
		scale /= 2;
	if (state[GUARD_STATE_CLEAN] >= GUARD_SCALE_EVERY) {
		scale = scale < 0x1p126 ? scale * 2 : scale;
		state[GUARD_STATE_CLEAN] = 0;
	}
	state[GUARD_STATE_SCALE] = scale;
}

static inline void guard_decide(const struct node *n, const struct kernel_args *args)
{
	const struct guard_attr *a = n->attr;
	const double *norm = args->in[0], *losses = args->in[1];
	double *step = args->out[0], *state = args->out[1], clip = 1;
	bool good = isfinite(*norm) && guard_finite(losses, losses ? shape_count(&n->in[1]->shape) : 0);

	if (a->max_norm > 0)
		clip = fmin(1, a->max_norm / (*norm + 1e-6));
	guard_count(state, good);
	if (a->scaling)
		guard_scale(state, args->page->loss_scale, good);
	step[GUARD_FACTOR] = good ? clip / args->page->loss_scale : 0;
	step[GUARD_SKIP] = !good;
	step[GUARD_UPDATES] = state[GUARD_STATE_UPDATES];
}

#endif
