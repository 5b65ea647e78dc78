/* SPDX-License-Identifier: Apache-2.0 */
/* plan_map.h: the fastest strategy for each size of a GPT, batch and link: ddp, fsdp (stage 3) or pdp, the same ranks
 * as one machine (fast link) and as several (slow link). All follow from the formulas of advise.h. */
#ifndef DPT_ADVISE_PLAN_MAP_H
#define DPT_ADVISE_PLAN_MAP_H

#include "trainer/advise/advise.h"

/* ---- the cost of a GPT ----
 * It is computed by formula, without planning a graph: for maps over many sizes, and for machines that are not here.
 * Memory follows PyTorch's of a published study of data parallelism on A100s (Li et al. 2022): weights, gradients and
 * one more copy in the compute type, plain SGD; samples of 256 tokens. */

#define GPT_COST_TOKENS 256 /* length of a sample */

struct gpt_size {
	const char *name;
	double parameters; /* includes the embedding and a separate classifier */
	int layers, heads;
	double width;
};

/* Returns the type that a map computes in: f16, bf16 or f32, the first for which the machine has a product. */
const char *gpt_cost_dtype(const struct hardware *h);

/* Returns the model at b samples of a micro-batch. Its parts are the halves of a layer: attention and MLP. recompute:
 * only the inputs of the parts are kept, and the backward pass computes the rest again. */
struct advise_model gpt_cost_model(const struct gpt_size *s, double b, bool recompute, const struct hardware *h);

/* ---- the map ---- */

enum { PLAN_MAP_SIZES = 11, PLAN_MAP_BATCHES = 6, PLAN_MAP_KINDS = 8, PLAN_MAP_REASON = 240 };
enum plan_map_link { PLAN_MAP_SLOW, PLAN_MAP_FAST, PLAN_MAP_LINKS };

extern const struct gpt_size plan_map_sizes[PLAN_MAP_SIZES];
extern const int plan_map_batches[PLAN_MAP_BATCHES]; /* samples of a rank; a pipeline has those of all its stages */
extern const char *const plan_map_links[PLAN_MAP_LINKS];

/* A strategy in one cell. */
struct plan_map_entry {
	enum advise_id strategy;
	int stages;
	bool fits, roomy;      /* roomy: memory is not completely full, which slows an allocator with a cache */
	double bytes, seconds; /* memory of a rank, time of a step; infinite: there is no such link */
	struct advise_cost cost;
};

struct plan_map_cell {
	const struct gpt_size *size;
	int batch_size;
	enum plan_map_link link;
	const struct plan_map_entry *best; /* one of entries; NULL: nothing fits */
	struct plan_map_entry entries[PLAN_MAP_KINDS];
	int n_entries;
	double samples_per_s; /* rate of all ranks together */
	double aco; /* amortised communication overhead: seconds that ddp waits for it, per sample of a rank */
	char reason[PLAN_MAP_REASON];
};

struct plan_map_opts {
	const struct hardware *hardware;
	int ranks; /* at least 2 */
	int nodes; /* machines that the slow link connects; divides ranks */
};

/* Fills one cell. Stages of a pipeline are on one machine if a machine has more than one rank. */
void plan_map_fill(struct plan_map_cell *ret, const struct plan_map_opts *o, int size, int batch,
		   enum plan_map_link link);

#endif
