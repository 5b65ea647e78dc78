/* SPDX-License-Identifier: Apache-2.0 */
/* plan_search.h: all configurations of one global batch on a machine: strategy x ranks x micro-batch x recomputation x
 * offload x precision, estimated by formula and sorted. Knows no flags: the caller provides the cost of the model at a
 * micro-batch size. */
#ifndef DPT_ADVISE_PLAN_SEARCH_H
#define DPT_ADVISE_PLAN_SEARCH_H

#include "trainer/advise/advise.h"

enum search_goal { SEARCH_SPEED, SEARCH_MEMORY, SEARCH_RANKS };

enum search_offload { OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_STATE /* parameters too */, OFFLOAD_COUNT };

struct search_plan {
	enum advise_id strategy;
	struct advise_layout layout;
	int64_t batch_size; /* samples of a rank in one forward pass */
	int64_t accum;	    /* passes of a step; 1 with a pipeline, which has layout.micros */
	int recompute;	    /* enum recompute of trainer/graph/pass.h */
	int precision;	    /* index into search_opts.precisions */
	enum search_offload offload;
	struct advise_cost cost;
	double bytes;	   /* of a rank's device, as planned */
	double peak_bytes; /* bytes and those of the process */
	double seconds;	   /* time of a step; at least that of the loader */
	double samples_per_s;
	double aco;	   /* exposed communication seconds divided by the batch per device */
	bool fits, built;  /* built: the program can start it */
	bool whole;	   /* bytes are from the passes, not from the formulas */
	const char *limit; /* phase that takes most time, or "memory" */
};

/* A way to compute the model, which determines the cost of its nodes. */
struct model_variant {
	int64_t micro; /* samples of one forward pass */
	int recompute; /* enum config_recompute */
	int precision; /* enum config_precision */
};

struct search_opts {
	const struct hardware *hardware;
	int nodes, ranks_per_node; /* largest numbers that the search tries */
	int64_t global_batch;
	const int *precisions;
	int n_precisions;
	double bucket_bytes;
	double data_bytes;   /* buffers of the data set in each rank */
	int threads;	     /* fixed number per rank; 0: cores of the machine divided by its ranks */
	double memory_bytes; /* of a device, or of the machine if ranks share it; 0: from the hardware file */
	unsigned wanted;     /* strategies to try, a bit each by enum advise_id */
	unsigned built;	     /* strategies that the program has, likewise */
	/* Fills the cost of a variant; ERR_USAGE, ERR_UNSUPPORTED: the configuration is skipped. */
	int (*model)(void *user, const struct model_variant *v, struct advise_model *ret, struct err *err);
	void *user;
};

struct plan_search {
	struct search_plan *plans; /* the best first: those that fit and are built, then the others */
	int n;
};

/* Fills *ret with all plans, sorted for the goal; search_done frees it. */
int search_all(struct plan_search *ret, const struct search_opts *o, enum search_goal goal, struct err *err);
void search_done(struct plan_search *s);

/* Replaces the bytes of plan i by those that the passes plan, and sorts the plans again. planned NULL: the plan is
 * impossible and is removed. */
void search_correct(struct plan_search *s, int i, const struct search_opts *o, enum search_goal goal,
		    const struct advise_cost *planned);

/* Returns true if plan i is the first of its strategy (with its stage or stages), ranks and recomputation. */
bool search_is_best_of_kind(const struct plan_search *s, int i);

/* Returns the number of settings in which two plans differ: strategy (with its stage or stages), ranks, micro-batch,
 * recomputation, offload, precision. */
int search_distance(const struct search_plan *a, const struct search_plan *b);

#endif
