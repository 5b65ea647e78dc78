/* ddp.c: everything on every rank; gradients lie in buckets that are summed beside the backward pass. What the first
 * part of the model adds comes last, with nothing left to hide it. */
#include "trainer/advise/parts.h"

#include <math.h>

static bool ddp_takes(const struct advise_model *m, const struct advise_layout *l)
{
	(void)m;
	return l->ranks > 1;
}

static void ddp_state(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage)
{
	const double params = m->master_bytes * advise_params(m);

	(void)stage;
	advise_activations(ret, m, true);
	ret->bytes[PLAN_PARAMETERS] = params;
	ret->bytes[PLAN_GRADIENTS] = params;
	if (l->micros > 1) /* the first one lies beside the sum that it is added to; a tied table's does to the end */
		ret->bytes[PLAN_GRADIENTS] = params + m->master_bytes * (m->tied_params + m->back.largest);
	ret->bytes[PLAN_OPTIMIZER] = m->moments * params;
	ret->stays_bytes = m->master_bytes * (advise_turn_params(m) + m->block.params);
	ret->sent[ADVISE_ALLREDUCE] = advise_ring(params, l->ranks, true);
}

static void ddp_time(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		     const struct hardware *h)
{
	const double bytes = m->master_bytes * advise_params(m), front = m->master_bytes * m->front.params;
	const double buckets = ceil(bytes / l->bucket_bytes), each = bytes / buckets;
	const double one_s = hardware_collective_s(h, "allreduce", each, l->ranks, l->nodes);
	const double tail_s = one_s * fmax(1, front / each);

	advise_compute(ret, m, l);
	ret->comm_s = buckets * one_s;
	ret->comm_exposed_s = advise_exposed(h, ret->comm_s, advise_backward_s(m), tail_s);
}

const struct advise advise_ddp = { "ddp", ddp_takes, ddp_state, ddp_time };
