/* SPDX-License-Identifier: Apache-2.0 */
/* study.c: see study.h. */
#include "tests/advise/study.h"

#include <math.h>

#define TOKENS 256.0	/* per sample */
#define MFU 0.5		/* share of a product's rate that a complete pass reaches: 35 % of the data sheet's */
#define HALF 2.0	/* bytes */
#define FULL 0.95	/* share of memory that a caching allocator can use at full speed */

const struct study_size study_sizes[STUDY_SIZES] = {
	[STUDY_125M] = { "125M", 0.125, 12, 12, 768 },	 [STUDY_350M] = { "0.35B", 0.35, 24, 16, 1024 },
	[STUDY_760M] = { "0.76B", 0.76, 24, 16, 1536 },	 [STUDY_1_3B] = { "1.3B", 1.3, 24, 16, 2048 },
	[STUDY_2_7B] = { "2.7B", 2.7, 32, 32, 2560 },	 [STUDY_6_7B] = { "6.7B", 6.7, 32, 32, 4096 },
	[STUDY_13B] = { "13B", 13, 40, 40, 5120 },	 [STUDY_16B] = { "16B", 16, 32, 48, 6144 },
	[STUDY_34B] = { "34B", 34, 48, 64, 7680 },
	[STUDY_81B] = { "81B", 81, 80, 64, 9216 },	 [STUDY_175B] = { "175B", 175, 96, 96, 12288 },
	[STUDY_1T] = { "1T", 1008, 128, 160, 25600 },
};

/* For b samples. Memory by the study's rules: 2 bytes per parameter, 2 per gradient, 2 more if ranks hold it
 * completely; activations of 34 h + 5 a T bytes per token and layer, or only the layers' inputs with recomputation.
 * The parts of a model are the two halves of each layer, attention and MLP. */
static struct advise_model model_of(const struct study_size *s, double b, bool again, const struct hardware *h)
{
	const int parts = 2 * s->layers;
	const double rows = b * TOKENS, block = 6 * s->width * s->width;
	const double rest = fmax(1e9 * s->billions - parts * block, 0);
	const double product = 2 * rows * s->width * 4 * s->width;
	const double rate = MFU * product / hardware_node_s(h, "study", "f16", product, 1);
	const double kept = rows * (17 * s->width + 2.5 * s->heads * TOKENS), cross = rows * HALF * s->width;
	const double forward_s = 2 * rows * block / rate, rest_s = 2 * rows * rest / rate;
	struct advise_model m = { .blocks = parts, .master_bytes = HALF, .moments = 1,
				  .cross_bytes = cross, .cross_back_bytes = cross };

	m.block = (struct advise_part){ .params = block, .read_bytes = HALF * block, .forward_s = forward_s,
					.backward_s = (again ? 3 : 2) * forward_s,
					.kept_bytes = again ? cross / 2 : kept };
	m.back = (struct advise_part){ .params = rest, .read_bytes = HALF * rest, .forward_s = rest_s,
				       .backward_s = 2 * rest_s };
	m.work_bytes = m.stage_bytes = again ? 2 * kept : 0;
	return m;
}

static struct study_result cost_of(const struct study_run *r, enum study_kind kind, bool again, int chunks,
				   const struct hardware *h)
{
	static const enum advise_id ids[] = { ADVISE_ddp, ADVISE_fsdp, ADVISE_pdp, ADVISE_pdp };
	const int stages = kind == STUDY_PDP2 ? 2 : kind == STUDY_PDP4 ? 4 : 0;
	const int nodes = r->ranks > h->ranks_per_node ? r->ranks / h->ranks_per_node : 1;
	struct advise_layout l = { .ranks = r->ranks, .nodes = nodes, .micros = stages ? chunks : 1, .zero_stage = 3,
				   .shard_degree = r->ranks, .prefetch = 1, .sync_each_batch = true, .stages = stages,
				   .bucket_bytes = 25e6, .offload_params = r->offload,
				   .offload_optimizer = r->offload };
	const double b = stages ? (double)r->batch * stages / chunks : (double)r->batch;
	const struct advise_model m = model_of(&study_sizes[r->size], b, again, h);
	struct advise_cost c;
	double bytes;

	advise_cost(&c, ids[kind], &m, &l, h);
	bytes = advise_bytes(&c);
	return (struct study_result){ .fits = bytes <= h->memory_bytes, .roomy = bytes <= FULL * h->memory_bytes,
				      .seconds = advise_seconds(&c), .exposed_s = c.comm_exposed_s,
				      .bytes = bytes };
}

static bool beats(const struct study_result *a, const struct study_result *b, double spread)
{
	const int more = (a->fits + a->roomy) - (b->fits + b->roomy);

	return !b->seconds || more > 0 || (!more && a->seconds < (1 - spread) * b->seconds);
}

struct study_result study_cost(const struct study_run *r, enum study_kind kind, const struct hardware *h)
{
	const int stages = kind == STUDY_PDP2 ? 2 : kind == STUDY_PDP4 ? 4 : 0;
	struct study_result best = { .seconds = 0 };

	for (int again = 0; again < 2; again++) {
		const struct study_result one = cost_of(r, kind, again, r->chunks ? r->chunks : stages, h);

		best = beats(&one, &best, 0) ? one : best;
	}
	return best;
}

/* A difference smaller than that of equal runs does not count; then the simpler one is better. */
int study_best(const struct study_run *r, const struct hardware *h)
{
	struct study_result best = { .seconds = 0 };
	int found = -1;

	for (int k = 0; k < STUDY_PDP4; k++) {
		const struct study_result one = study_cost(r, (enum study_kind)k, h);

		if (!one.fits || !beats(&one, &best, h->spread))
			continue;
		best = one;
		found = k;
	}
	return found;
}
