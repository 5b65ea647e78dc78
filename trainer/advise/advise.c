/* advise.c: what the formulas of strategies share: sums over a model's parts, rings, overlap, offloading, the rank that
 * needs most memory; and the table of strategies. */
#include "trainer/advise/advise.h"

#include <math.h>
#include <string.h>

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

#define ADVISE(name) extern const struct advise advise_##name;
#include "trainer/advise/advise.def"
#undef ADVISE

const struct advise *const advise_table[ADVISE_COUNT] = {
#define ADVISE(name) [ADVISE_##name] = &advise_##name,
#include "trainer/advise/advise.def"
#undef ADVISE
};

/* Offloads the activations of all blocks but the last, with which the backward pass begins. The memory peak is then in
 * the backward pass: activations of two blocks (without the tensors that cross their borders, which are offloaded) and
 * the gradients made so far, unless all gradients exist from the start. Returns the bytes that are copied each way. */
static double offload_activations(struct advise_cost *c, const struct advise_model *m)
{
	const double offloaded = fmax(0, m->blocks - 1) * m->block.kept_bytes;

	c->host_bytes += offloaded;
	c->bytes[PLAN_ACTIVATIONS] += m->stage_bytes - m->work_bytes - 2 * m->cross_back_bytes -
				      fmax(0, m->blocks - 2) * m->block.kept_bytes;
	c->bytes[PLAN_WORKSPACE] = m->stage_workspace_bytes;
	c->bytes[PLAN_GRADIENTS] += c->late_bytes;
	return offloaded;
}

/* Adds the cost of offloading. Moments are copied once a step, activations and parameters with each pass. Copies of
 * moments and activations overlap computation. Parameters are waited for, before their gathers; those of a block stay
 * on the device while they are read. */
static void add_offload_cost(struct advise_cost *c, const struct advise_model *m, const struct advise_layout *l,
			     const struct hardware *h)
{
	const struct {
		bool on, waited;
		enum plan_category category;
		double times; /* over the link in a step */
	} rules[] = { { l->offload_optimizer, false, PLAN_OPTIMIZER, 2 },
		      { l->offload_params, true, PLAN_SHARDS, 3 },
		      { l->offload_params, true, PLAN_PARAMETERS, 3 } };
	double overlapped = 0, waited = 0; /* bytes copied */

	if (l->offload_params) /* casts are repeated whenever a block is copied in */
		c->bytes[PLAN_ACTIVATIONS] -= c->casts_bytes;
	if (l->offload_activations)
		overlapped = 2 * l->micros * offload_activations(c, m);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const double bytes = rules[i].on ? c->bytes[rules[i].category] : 0;

		if (!rules[i].on)
			continue;
		c->host_bytes += bytes;
		c->bytes[rules[i].category] = rules[i].waited ? fmin(bytes, c->stays_bytes) : 0;
		*(rules[i].waited ? &waited : &overlapped) += rules[i].times * bytes;
	}
	if (h && h->host_rate > 0)
		c->copy_exposed_s = waited / h->host_rate +
			fmax(0, overlapped / h->host_rate - h->overlap * (c->forward_s + c->backward_s));
}

void advise_cost(struct advise_cost *ret, enum advise_id id, const struct advise_model *m,
		 const struct advise_layout *l, const struct hardware *h)
{
	const struct advise *a = advise_table[id];
	const int stages = id == ADVISE_pdp ? l->stages : 1;

	*ret = (struct advise_cost){ .comm_s = 0 };
	for (int s = 0; s < stages; s++) {
		struct advise_cost c = { .comm_s = 0 };

		a->state(&c, m, l, s);
		if (s == 0 || advise_bytes(&c) > advise_bytes(ret)) {
			memcpy(ret->bytes, c.bytes, sizeof(c.bytes));
			ret->stays_bytes = c.stays_bytes;
			ret->casts_bytes = c.casts_bytes;
			ret->late_bytes = c.late_bytes;
			ret->stage = s;
		}
		ret->blocks = c.blocks;
		ret->last_blocks = c.last_blocks;
		for (int k = 0; k < ADVISE_COLLECTIVES; k++)
			ret->sent[k] = fmax(ret->sent[k], c.sent[k]);
	}
	if (h)
		a->time(ret, m, l, h);
	add_offload_cost(ret, m, l, h);
}
