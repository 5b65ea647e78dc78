/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_costs.c: the cost of a step of each strategy, with offloading. */
#include "trainer/advise/advise.h"

#include <math.h>
#include <string.h>

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
	c->bytes[PLAN_ACTIVATIONS] +=
		m->stage_bytes - m->work_bytes - 2 * m->cross_back_bytes - fmax(0, m->blocks - 2) * m->block.kept_bytes;
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
