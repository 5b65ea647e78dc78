/* SPDX-License-Identifier: Apache-2.0 */
/* study.c: see study.h. */
#include "tests/advise/study.h"

#include "trainer/advise/plan_map.h"

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
	const struct study_size *s = &study_sizes[r->size];
	const struct gpt_size gpt = { s->name, 1e9 * s->billions, s->layers, s->heads, s->width };
	const struct advise_model m = gpt_cost_model(&gpt, b, again, h);
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
