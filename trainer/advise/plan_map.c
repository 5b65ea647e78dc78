/* SPDX-License-Identifier: Apache-2.0 */
/* plan_map.c: see plan_map.h. All strategies recompute activations, so that they are compared at equal settings.
 * Completely full memory is used only if nothing else fits. A difference smaller than that of equal runs does not
 * count: then the simpler strategy wins. */
#include "trainer/advise/plan_map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROOMY 0.95 /* share of memory up to which an allocator with a cache is fast */
#define BUCKET_BYTES 25e6
#define GB 1e9

/* Sizes of GPT-3 and OPT (Brown et al. 2020, Zhang et al. 2022), 1t as in the study; a vocabulary of 50,257, and an
 * embedding and a classifier of their own. */
#define SIZE(name, layers, heads, width)                                                                               \
	{ name, (layers) * (12.0 * (width) * (width) + 13.0 * (width)) + (2 * 50257.0 + GPT_COST_TOKENS) * (width),    \
	  layers, heads, width }
const struct gpt_size plan_map_sizes[PLAN_MAP_SIZES] = {
	SIZE("125m", 12, 12, 768),   SIZE("350m", 24, 16, 1024),  SIZE("760m", 24, 16, 1536),
	SIZE("1.3b", 24, 16, 2048),  SIZE("2.7b", 32, 32, 2560),  SIZE("6.7b", 32, 32, 4096),
	SIZE("13b", 40, 40, 5120),   SIZE("30b", 48, 56, 7168),	  SIZE("66b", 64, 72, 9216),
	SIZE("175b", 96, 96, 12288), SIZE("1t", 128, 160, 25600),
};
const int plan_map_batches[PLAN_MAP_BATCHES] = { 8, 16, 32, 64, 128, 256 };
const char *const plan_map_links[PLAN_MAP_LINKS] = { "slow", "fast" };

static double rank_memory_bytes(const struct hardware *h)
{
	return h->memory_bytes / (h->shared ? h->ranks_per_node : 1);
}

static void add_entry(struct plan_map_cell *c, const struct plan_map_opts *o, enum advise_id strategy, int stages)
{
	const struct advise_layout l = { .ranks = o->ranks, .nodes = c->link == PLAN_MAP_SLOW ? o->nodes : 1,
					 .micros = stages ? stages : 1, .zero_stage = 3,
					 .shard_degree = o->ranks, .prefetch = 1, .sync_each_batch = true,
					 .stages = stages, .bucket_bytes = BUCKET_BYTES };
	/* As many micro-batches as stages, of a rank's batch each. */
	const struct advise_model m = gpt_cost_model(c->size, c->batch_size, true, o->hardware);
	const double memory = rank_memory_bytes(o->hardware);
	struct plan_map_entry e = { .strategy = strategy, .stages = stages };

	advise_cost(&e.cost, strategy, &m, &l, o->hardware);
	e.bytes = advise_bytes(&e.cost) + o->hardware->process_bytes;
	e.seconds = advise_seconds(&e.cost);
	e.fits = e.bytes <= memory && isfinite(e.seconds);
	e.roomy = e.bytes <= ROOMY * memory;
	c->entries[c->n_entries++] = e;
}

static bool entry_beats(const struct plan_map_entry *a, const struct plan_map_entry *b, double spread)
{
	const int more = (a->fits + a->roomy) - (b->fits + b->roomy);

	if (more || !a->fits)
		return more > 0 || (!more && a->bytes < b->bytes);
	return a->seconds < (1 - spread) * b->seconds;
}

/* ---- reasons ---- */

static const char *entry_name(const struct plan_map_entry *e, char *text, size_t n)
{
	if (e->stages)
		snprintf(text, n, "%s of %d stages", advise_table[e->strategy]->name, e->stages);
	else
		snprintf(text, n, "%s", advise_table[e->strategy]->name);
	return text;
}

/* Returns what a slower strategy loses most time by. */
static const char *slowest_part(const struct plan_map_entry *best, const struct plan_map_entry *e)
{
	const struct advise_cost *a = &best->cost, *b = &e->cost;
	const double compute_s = b->forward_s + b->backward_s - a->forward_s - a->backward_s;
	const double comm_s = b->comm_exposed_s - a->comm_exposed_s, bubble_s = b->bubble_s - a->bubble_s;

	if (fmax(compute_s, fmax(comm_s, bubble_s)) <= 0)
		return "optimizer";
	return comm_s >= fmax(compute_s, bubble_s) ? "exposed communication" : bubble_s >= compute_s ? "bubble" :
							       "compute";
}

static size_t append_loser(struct plan_map_cell *c, size_t used, const struct plan_map_entry *e, double memory)
{
	char name[32];
	int n;

	entry_name(e, name, sizeof(name));
	if (!e->fits)
		n = snprintf(c->reason + used, sizeof(c->reason) - used, "; %s needs %.3g of %.3g GB", name,
			     e->bytes / GB, memory / GB);
	else if (c->best->roomy && !e->roomy)
		n = snprintf(c->reason + used, sizeof(c->reason) - used, "; %s fills the memory", name);
	else if (e->seconds <= c->best->seconds)
		n = snprintf(c->reason + used, sizeof(c->reason) - used, "; %s as fast within the spread", name);
	else
		n = snprintf(c->reason + used, sizeof(c->reason) - used, "; %s %.3g times as long (%s)", name,
			     e->seconds / c->best->seconds, slowest_part(c->best, e));
	return used + (n > 0 ? (size_t)n : 0);
}

/* Names the best of the entries with another strategy than the winner. */
static void explain_winner(struct plan_map_cell *c, double memory)
{
	char name[32];
	size_t used = (size_t)snprintf(c->reason, sizeof(c->reason), "%s: waits %.3g ms a sample for communication",
				       entry_name(c->best, name, sizeof(name)),
				       1e3 * c->best->cost.comm_exposed_s / c->batch_size);

	for (int s = 0; s < ADVISE_COUNT && used < sizeof(c->reason); s++) {
		const struct plan_map_entry *rival = NULL;

		for (int i = 0; i < c->n_entries; i++)
			if ((int)c->entries[i].strategy == s && (!rival || entry_beats(&c->entries[i], rival, 0)))
				rival = &c->entries[i];
		if (rival && rival->strategy != c->best->strategy)
			used = append_loser(c, used, rival, memory);
	}
}

static void explain_none(struct plan_map_cell *c, double memory)
{
	const struct plan_map_entry *least = &c->entries[0];
	char name[32];

	for (int i = 1; i < c->n_entries; i++)
		least = c->entries[i].bytes < least->bytes ? &c->entries[i] : least;
	if (least->bytes <= memory)
		snprintf(c->reason, sizeof(c->reason), "the hardware file has no link %s",
			 c->link == PLAN_MAP_SLOW ? "between machines" : "within a machine");
	else
		snprintf(c->reason, sizeof(c->reason), "nothing fits: %s needs least, %.3g of %.3g GB",
			 entry_name(least, name, sizeof(name)), least->bytes / GB, memory / GB);
}

void plan_map_fill(struct plan_map_cell *ret, const struct plan_map_opts *o, int size, int batch,
		   enum plan_map_link link)
{
	const int local = link == PLAN_MAP_SLOW ? o->ranks / o->nodes : o->ranks;
	const int most = local > 1 ? local : o->ranks;
	struct plan_map_cell *c = ret;

	*c = (struct plan_map_cell){ .size = &plan_map_sizes[size], .batch_size = plan_map_batches[batch],
				     .link = link };
	add_entry(c, o, ADVISE_ddp, 0);
	add_entry(c, o, ADVISE_fsdp, 0);
	for (int stages = 2; stages <= most && c->n_entries < PLAN_MAP_KINDS; stages *= 2)
		if (o->ranks % stages == 0 && stages <= 2 * c->size->layers)
			add_entry(c, o, ADVISE_pdp, stages);
	for (int i = 0; i < c->n_entries; i++)
		if (c->entries[i].fits && (!c->best || entry_beats(&c->entries[i], c->best, o->hardware->spread)))
			c->best = &c->entries[i];
	c->aco = c->entries[0].cost.comm_exposed_s / c->batch_size;
	if (c->best) {
		c->samples_per_s = (double)o->ranks * c->batch_size / c->best->seconds;
		explain_winner(c, rank_memory_bytes(o->hardware));
	} else {
		explain_none(c, rank_memory_bytes(o->hardware));
	}
}

/* ---- the cost of a GPT ----
 * A token takes 34 h + 5 a T bytes of activations in a layer of width h with a heads at T tokens and two bytes an
 * element (Korthikanti et al. 2022), and 12 h^2 parameters, each of them two operations. */

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

	m.block = (struct advise_part){ .trained = block, .stored_bytes = element * block,
					.read_bytes = element * block, .forward_s = forward_s,
					.backward_s = (recompute ? 3 : 2) * forward_s,
					.kept_bytes = recompute ? cross / 2 : kept };
	m.back = (struct advise_part){ .trained = rest, .stored_bytes = element * rest,
				       .read_bytes = element * rest, .forward_s = rest_s,
				       .backward_s = 2 * rest_s };
	m.work_bytes = m.stage_bytes = recompute ? 2 * kept : 0;
	return m;
}
