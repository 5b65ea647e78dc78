/* study.h: models and machines of a published study of data parallelism (DDP, FSDP, pipelines beside each other) of GPT
 * models on machines of 8 A100 40 GB, with its own rules of memory. */
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
	int64_t batch; /* of a GPU */
	int chunks;    /* of a pipeline; 0: as many as it has stages, as in the study */
	bool offload;  /* FSDP's shards */
};

struct study_result {
	bool fits;
	double seconds, exposed_s, bytes;
};

/* With recomputation where that is needed, or faster. */
struct study_result study_cost(const struct study_run *r, enum study_kind kind, const struct hardware *h);

/* The fastest that fits; -1: none does. */
int study_best(const struct study_run *r, const struct hardware *h);

#endif
