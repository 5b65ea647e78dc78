/* single_cost.c: one rank holds everything and does not communicate. Gradients grow while activations shrink, so the
 * larger of the two moments is the peak. */
#include "trainer/advise/parts.h"

static bool single_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks == 1;
}

static void single_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
			 int stage)
{
	const double params = m->master_bytes * advise_params(m);
	double turn = m->master_bytes * advise_turn_params(m), kept;

	(void)stage;
	advise_activations(ret, m, true);
	kept = ret->bytes[PLAN_ACTIVATIONS];
	ret->bytes[PLAN_PARAMETERS] = params;
	ret->bytes[PLAN_OPTIMIZER] = m->moments * params;
	ret->stays_bytes = m->master_bytes * (advise_turn_params(m) + m->block.params);
	if (l->micros > 1) { /* sums exist in addition to new gradients */
		ret->bytes[PLAN_GRADIENTS] = params + turn;
	} else if (kept + turn >= params + m->stage_bytes) {
		ret->bytes[PLAN_GRADIENTS] = turn;
	} else {
		ret->bytes[PLAN_GRADIENTS] = params;
		ret->bytes[PLAN_ACTIVATIONS] = m->stage_bytes;
	}
}

static void single_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
			const struct hardware *h)
{
	(void)h;
	advise_compute(ret, m, l);
}

const struct advise advise_single = { "single", single_takes, single_state, single_time };
