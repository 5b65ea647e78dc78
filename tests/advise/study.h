/* SPDX-License-Identifier: Apache-2.0 */
/* study.h: models and machines of a published study of data parallelism (DDP, FSDP, parallel pipelines) of GPT models
 * on machines of 8 A100 40 GB, with its own memory rules. */
#ifndef DPT_TESTS_ADVISE_STUDY_H
#define DPT_TESTS_ADVISE_STUDY_H

#include "trainer/advise/advise.h"

struct study_size {
	const char *name;
	double billions;
	int layers, heads;
	double width;
};

extern const struct study_size study_sizes[];
enum { STUDY_125M, STUDY_350M, STUDY_760M, STUDY_1_3B, STUDY_2_7B, STUDY_6_7B, STUDY_13B, STUDY_16B, STUDY_34B,
       STUDY_81B, STUDY_175B, STUDY_1T, STUDY_SIZES };

enum study_kind { STUDY_DDP, STUDY_FSDP, STUDY_PDP2, STUDY_PDP4, STUDY_KINDS };

struct study_run {
	int size, ranks;
	int64_t batch; /* per GPU */
	int chunks;    /* per pipeline; 0: the number of stages, as in the study */
	bool offload;  /* offloads FSDP's shards */
};

struct study_result {
	bool fits, roomy; /* roomy: its allocator has space left */
	double seconds, exposed_s, bytes;
};

/* With recomputation if needed, or faster. Completely full memory is used only if nothing else fits: the study's runs
 * were slowed by their allocator then. */
struct study_result study_cost(const struct study_run *r, enum study_kind kind, const struct hardware *h);

/* The study's comparison: the fastest of DDP, FSDP and pipelines of two stages (which its rules describe) that fits,
 * by the same rule; -1 if none fits. */
int study_best(const struct study_run *r, const struct hardware *h);

#endif
