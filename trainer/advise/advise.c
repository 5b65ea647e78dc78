/* SPDX-License-Identifier: Apache-2.0 */
/* advise.c: what the formulas of strategies share: sums over a model's parts, rings, overlap. */
#include "trainer/advise/advise.h"

#include <math.h>

double advise_bytes(const struct advise_cost *c)
{
	double sum = 0;

	for (int i = 0; i < PLAN_CATEGORY_COUNT; i++)
		sum += c->bytes[i];
	return sum;
}

double advise_seconds(const struct advise_cost *c)
{
	return c->forward_s + c->backward_s + c->comm_exposed_s + c->bubble_s + c->optimizer_s + c->copy_exposed_s;
}

double advise_params(const struct advise_model *m)
{
	return m->front.params + m->blocks * m->block.params + m->back.params;
}

double advise_turn_params(const struct advise_model *m)
{
	return m->tied_params > 0 ? m->tied_params : m->back.params;
}

double advise_forward_s(const struct advise_model *m)
{
	return m->front.forward_s + m->blocks * m->block.forward_s + m->back.forward_s;
}

double advise_backward_s(const struct advise_model *m)
{
	return m->front.backward_s + m->blocks * m->block.backward_s + m->back.backward_s;
}

double advise_update_s(const struct advise_model *m)
{
	return m->front.update_s + m->blocks * m->block.update_s + m->back.update_s;
}

void advise_activations(struct advise_cost *ret, const struct advise_model *m, bool casts)
{
	double kept = m->front.kept_bytes + m->blocks * m->block.kept_bytes + m->back.kept_bytes;

	if (casts)
		kept += m->front.cast_bytes + m->blocks * m->block.cast_bytes + m->back.cast_bytes;
	ret->casts_bytes = casts ? m->blocks * m->block.cast_bytes : 0;
	ret->bytes[PLAN_ACTIVATIONS] = kept + m->work_bytes;
	ret->bytes[PLAN_WORKSPACE] = m->workspace_bytes;
	ret->bytes[PLAN_INPUTS] = m->input_bytes;
}

double advise_ring(double bytes, double ranks, bool sum)
{
	return (sum ? 2 : 1) * bytes * (ranks - 1) / ranks;
}

void advise_compute(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l)
{
	ret->forward_s = l->micros * advise_forward_s(m);
	ret->backward_s = l->micros * advise_backward_s(m);
	ret->optimizer_s = advise_update_s(m);
}

double advise_exposed(const struct hardware *h, double comm_s, double hidden_s, double tail_s)
{
	double least = fmin(tail_s, comm_s), hideable = fmin(comm_s - least, hidden_s);

	return comm_s - h->overlap * hideable;
}
