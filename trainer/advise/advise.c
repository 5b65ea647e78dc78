/* advise.c: the table of strategies; offload, which goes with each; the rank that needs most. */
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

/* Those of all blocks but the last, which the backward pass begins with. Most is there inside that pass, with those of
 * two blocks (less what crosses into them and out, which lies with the others) and with the gradients that it has made
 * by then, where they are not all there from the start. Returns what comes and goes. */
static double offload_activations(struct advise_cost *c, const struct advise_model *m)
{
	const double away = fmax(0, m->blocks - 1) * m->block.kept_bytes;

	c->host_bytes += away;
	c->bytes[PLAN_ACTIVATIONS] += m->stage_bytes - m->work_bytes - 2 * m->cross_back_bytes -
				      fmax(0, m->blocks - 2) * m->block.kept_bytes;
	c->bytes[PLAN_WORKSPACE] = m->stage_workspace_bytes;
	c->bytes[PLAN_GRADIENTS] += c->late_bytes;
	return away;
}

/* What lies in the machine's memory comes and goes once a step; activations and parameters with each pass. Moments and
 * activations travel beside computation; parameters are waited for, in front of their gathers, and a block's stay where
 * they are read. */
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
	double beside = 0, waited = 0;

	if (l->offload_params) /* copies in another type are made anew in each stay */
		c->bytes[PLAN_ACTIVATIONS] -= c->casts_bytes;
	if (l->offload_activations)
		beside = 2 * l->micros * offload_activations(c, m);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const double bytes = rules[i].on ? c->bytes[rules[i].category] : 0;

		if (!rules[i].on)
			continue;
		c->host_bytes += bytes;
		c->bytes[rules[i].category] = rules[i].waited ? fmin(bytes, c->stays_bytes) : 0;
		*(rules[i].waited ? &waited : &beside) += rules[i].times * bytes;
	}
	if (h && h->host_rate > 0)
		c->copy_exposed_s = waited / h->host_rate +
			fmax(0, beside / h->host_rate - h->overlap * (c->forward_s + c->backward_s));
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
