/* guard_math.h: the decision of guard.h; a handful of numbers, the same on every host backend. */
#ifndef DPT_OPS_GUARD_MATH_H
#define DPT_OPS_GUARD_MATH_H

#include <math.h>
#include <stdint.h>

#include "trainer/graph/both.h"
#include "trainer/graph/kernel.h"
#include "trainer/ops/guard/guard.h"

BOTH_INLINE bool guard_finite(const double *v, int64_t n)
{
	for (int64_t i = 0; v && i < n; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

BOTH_INLINE void guard_count(double *state, bool good)
{
	state[GUARD_STATE_UPDATES] += good;
	state[GUARD_STATE_SKIPPED] += !good;
	state[GUARD_STATE_ROW] = good ? 0 : state[GUARD_STATE_ROW] + 1;
}

BOTH_INLINE void guard_scale(double *state, double scale, bool good)
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

/* norm, losses [n_losses] and votes (or NULL) decide; step and state are written. */
struct guard_numbers {
	const double *norm, *losses, *votes;
	int64_t n_losses;
	double *step, *state;
};

/* A rehearsal, as a step without data, is skipped and not counted. */
BOTH_INLINE void guard_rehearse(const struct guard_numbers *v)
{
	v->step[GUARD_FACTOR] = 0;
	v->step[GUARD_SKIP] = 1;
	v->step[GUARD_UPDATES] = v->state[GUARD_STATE_UPDATES];
}

BOTH_INLINE void guard_decide_by(const struct guard_attr *a, const struct guard_numbers *v,
				 const struct step_page *page)
{
	const bool finite = guard_finite(v->losses, v->losses ? v->n_losses : 0);
	const bool good = isfinite(*v->norm) && finite && v->state[GUARD_STATE_CLEAN] != GUARD_ENDED;
	double clip = 1;

	if (page->rehearsal || (v->votes && *v->votes >= GUARD_BLANK)) {
		guard_rehearse(v);
		return;
	}
	if (!a->scaling && !finite)
		v->state[GUARD_STATE_CLEAN] = GUARD_ENDED;
	if (a->max_norm > 0)
		clip = fmin(1.0, a->max_norm / (*v->norm + 1e-6));
	guard_count(v->state, good);
	if (a->scaling)
		guard_scale(v->state, page->loss_scale, good);
	v->step[GUARD_FACTOR] = good ? clip / page->loss_scale : 0;
	v->step[GUARD_SKIP] = !good;
	v->step[GUARD_UPDATES] = v->state[GUARD_STATE_UPDATES];
}

static inline struct guard_numbers guard_operands(const struct node *n, const struct kernel_args *args)
{
	struct guard_numbers v = { (const double *)args->in[0], (const double *)args->in[1],
				   (const double *)args->in[3], 0, (double *)args->out[0], (double *)args->out[1] };

	v.n_losses = v.losses ? shape_count(&n->in[1]->shape) : 0;
	return v;
}

static inline void guard_decide(const struct node *n, const struct kernel_args *args)
{
	const struct guard_numbers v = guard_operands(n, args);

	guard_decide_by((const struct guard_attr *)n->attr, &v, args->page);
}

#endif
