/* dp_cost.c: one process with several devices, each with a part of the batch. Device 0 has the masters, the sums of
 * gradients and the moments. A device has a copy of the parameters while it computes (or of those that it casts, while
 * it casts them), and the copy for the next device is made meanwhile. Nothing leaves the process. On a host the devices
 * share its cores, which their kernels use in turn. */
#include "trainer/advise/parts.h"

static bool dp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks == 1 && l->devices > 1;
}

static void dp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double params = m->master_bytes * advise_params(m), copies = m->low ? 1 : 2;

	(void)stage;
	advise_activations(ret, m, true);
	ret->bytes[PLAN_INPUTS] *= l->devices;
	ret->bytes[PLAN_PARAMETERS] = (1 + copies) * params;
	ret->bytes[PLAN_GRADIENTS] = params + m->master_bytes * advise_turn_params(m);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * params;
	ret->stays_bytes = m->master_bytes * (advise_turn_params(m) + m->block.params);
}

static void dp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		    const struct hardware *h)
{
	(void)h;
	advise_compute(ret, m, l);
	ret->forward_s *= l->devices;
	ret->backward_s *= l->devices;
}

const struct advise advise_dp = { "dp", dp_takes, dp_state, dp_time };
