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

double advise_stored_bytes(const struct advise_model *m)
{
	return m->front.stored_bytes + m->blocks * m->block.stored_bytes + m->back.stored_bytes;
}

double advise_copied_bytes(const struct advise_model *m)
{
	return m->front.copied_bytes + m->blocks * m->block.copied_bytes + m->back.copied_bytes;
}

double advise_gradient_bytes(const struct advise_model *m)
{
	return m->master_bytes * (m->front.trained + m->blocks * m->block.trained + m->back.trained);
}

double advise_turn_stored_bytes(const struct advise_model *m)
{
	return m->tied_bytes > 0 ? m->tied_bytes : m->back.stored_bytes;
}

double advise_turn_gradient_bytes(const struct advise_model *m)
{
	return m->master_bytes * (m->tied_trained > 0 ? m->tied_trained : m->back.trained);
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
