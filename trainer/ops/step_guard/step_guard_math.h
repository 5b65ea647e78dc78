/* SPDX-License-Identifier: Apache-2.0 */
/* step_guard_math.h: the decision of step_guard.h on a few scalars, the same on every backend. */
#ifndef DPT_OPS_STEP_GUARD_MATH_H
#define DPT_OPS_STEP_GUARD_MATH_H

#include <math.h>

#include "trainer/graph/kernel.h"
#include "trainer/ops/step_guard/step_guard.h"

HOST_DEVICE_INLINE bool step_guard_finite(const double *v, int64_t n)
{
	for (int64_t i = 0; v && i < n; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

HOST_DEVICE_INLINE void step_guard_count(double *state, bool good)
{
	state[STEP_GUARD_STATE_UPDATES] += good;
	state[STEP_GUARD_STATE_SKIPPED] += !good;
	state[STEP_GUARD_STATE_ROW] = good ? 0 : state[STEP_GUARD_STATE_ROW] + 1;
}

HOST_DEVICE_INLINE void step_guard_scale(const struct step_guard_attr *a, double *state, double scale, bool good)
{
	const double most = a->max_scale > 0 ? a->max_scale : 0x1p126;

	state[STEP_GUARD_STATE_CLEAN] = good ? state[STEP_GUARD_STATE_CLEAN] + 1 : 0;
	if (!good && !a->fixed)
		scale /= 2;
	if (state[STEP_GUARD_STATE_CLEAN] >= STEP_GUARD_SCALE_EVERY) {
		scale = scale < most && !a->fixed ? scale * 2 : scale;
		state[STEP_GUARD_STATE_CLEAN] = 0;
	}
	state[STEP_GUARD_STATE_SCALE] = scale;
}

/* Operands: norm, losses [n_losses] and votes (may be NULL); outputs step and state. */
struct step_guard_numbers {
	const double *norm, *losses, *votes;
	int64_t n_losses;
	double *step, *state;
};

/* A warm-up run, like a step without data, is skipped and not counted. */
HOST_DEVICE_INLINE void step_guard_rehearse(const struct step_guard_numbers *v)
{
	v->step[STEP_GUARD_FACTOR] = 0;
	v->step[STEP_GUARD_SKIP] = 1;
	v->step[STEP_GUARD_UPDATES] = v->state[STEP_GUARD_STATE_UPDATES];
}

HOST_DEVICE_INLINE void step_guard_decide_by(const struct step_guard_attr *a, const struct step_guard_numbers *v,
					     const struct step_page *page)
{
	const bool finite = step_guard_finite(v->losses, v->losses ? v->n_losses : 0);
	const bool good = isfinite(*v->norm) && finite && v->state[STEP_GUARD_STATE_CLEAN] != STEP_GUARD_ENDED;
	double clip = 1;

	if (page->rehearsal || (v->votes && *v->votes >= STEP_GUARD_BLANK)) {
		step_guard_rehearse(v);
		return;
	}
	if (!a->scaling && !finite)
		v->state[STEP_GUARD_STATE_CLEAN] = STEP_GUARD_ENDED;
	if (a->max_norm > 0)
		clip = fmin(1.0, a->max_norm / (*v->norm + 1e-6));
	step_guard_count(v->state, good);
	if (a->scaling)
		step_guard_scale(a, v->state, page->loss_scale, good);
	v->step[STEP_GUARD_FACTOR] = good ? clip / page->loss_scale : 0;
	v->step[STEP_GUARD_SKIP] = !good;
	v->step[STEP_GUARD_UPDATES] = v->state[STEP_GUARD_STATE_UPDATES];
}

static inline struct step_guard_numbers step_guard_operands(const struct node *n, const struct kernel_args *args)
{
	struct step_guard_numbers v = { (const double *)args->in[0], (const double *)args->in[1],
				   (const double *)args->in[3], 0, (double *)args->out[0], (double *)args->out[1] };

	v.n_losses = v.losses ? shape_count(&n->in[1]->shape) : 0;
	return v;
}

static inline void step_guard_decide(const struct node *n, const struct kernel_args *args)
{
	const struct step_guard_numbers v = step_guard_operands(n, args);

	step_guard_decide_by((const struct step_guard_attr *)n->attr, &v, args->page);
}

#endif
