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

/* What lies in the machine's memory comes and goes once a step; activations and parameters with each pass. Moments and
 * activations travel beside computation; parameters are waited for, in front of their gathers, and a block's stay where
 * they are read. */
static void offload(struct advise_cost *c, const struct advise_model *m, const struct advise_layout *l,
		    const struct hardware *h)
{
	const struct {
		bool on, waited;
		enum plan_category category;
		double times; /* over the link in a step */
	} rules[] = { { l->offload_optimizer, false, PLAN_OPTIMIZER, 2 },
		      { l->offload_params, true, PLAN_SHARDS, 3 },
		      { l->offload_params, true, PLAN_PARAMETERS, 3 },
		      { l->offload_activations, false, PLAN_ACTIVATIONS, 2 * l->micros } };
	double beside = 0, waited = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const double bytes = rules[i].on ? c->bytes[rules[i].category] : 0;

		if (!rules[i].on)
			continue;
		c->host_bytes += bytes;
		c->bytes[rules[i].category] = rules[i].waited ? bytes / fmax(m->blocks, 1) : 0;
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
		if (s == 0 || advise_bytes(&c) > advise_bytes(ret))
			memcpy(ret->bytes, c.bytes, sizeof(c.bytes));
		for (int k = 0; k < ADVISE_COLLECTIVES; k++)
			ret->sent[k] = fmax(ret->sent[k], c.sent[k]);
	}
	if (h)
		a->time(ret, m, l, h);
	offload(ret, m, l, h);
}
