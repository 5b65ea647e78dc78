/* SPDX-License-Identifier: Apache-2.0 */
/* gpt_cost.c: see gpt_cost.h. A token takes 34 h + 5 a T bytes of activations in a layer of width h with a heads at T
 * tokens and two bytes an element (Korthikanti et al. 2022), and 12 h^2 parameters, each of them two operations. */
#include "trainer/advise/gpt_cost.h"

#include <math.h>
#include <string.h>

/* Share of a product's rate that a complete pass reaches: 35 % of an A100's data sheet, as in the study. */
#define WHOLE_PASS 0.5

const char *gpt_cost_dtype(const struct hardware *h)
{
	static const char *const types[] = { "f16", "bf16" };

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (int i = 0; i < h->n_nodes; i++)
			if (!strcmp(h->nodes[i].op, "product") && !strcmp(h->nodes[i].dtype, types[t]))
				return types[t];
	return "f32";
}

struct advise_model gpt_cost_model(const struct gpt_size *s, double b, bool recompute, const struct hardware *h)
{
	const char *const dtype = gpt_cost_dtype(h);
	const double element = strcmp(dtype, "f32") ? 2 : 4;
	const int parts = 2 * s->layers;
	const double rows = b * GPT_COST_TOKENS, block = 6 * s->width * s->width;
	const double rest = fmax(s->parameters - parts * block, 0);
	const double product = 2 * rows * s->width * 4 * s->width;
	const double rate = WHOLE_PASS * product / hardware_node_s(h, "gpt", dtype, product, 1);
	const double kept = element / 2 * rows * (17 * s->width + 2.5 * s->heads * GPT_COST_TOKENS);
	const double cross = rows * element * s->width;
	const double forward_s = 2 * rows * block / rate, rest_s = 2 * rows * rest / rate;
	struct advise_model m = { .blocks = parts, .master_bytes = element, .moments = 1,
				  .cross_bytes = cross, .cross_back_bytes = cross };

	m.block = (struct advise_part){ .params = block, .read_bytes = element * block, .forward_s = forward_s,
					.backward_s = (recompute ? 3 : 2) * forward_s,
					.kept_bytes = recompute ? cross / 2 : kept };
	m.back = (struct advise_part){ .params = rest, .read_bytes = element * rest, .forward_s = rest_s,
				       .backward_s = 2 * rest_s };
	m.work_bytes = m.stage_bytes = recompute ? 2 * kept : 0;
	return m;
}
