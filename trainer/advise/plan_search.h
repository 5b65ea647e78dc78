/* plan_search.h: every configuration of one global batch on a machine: strategy x ranks x micro-batch x recomputation x
 * offload x precision, by formula, in order. Knows no flags: what a model costs at a size of micro-batch is asked of
 * the caller. */
#ifndef DPT_ADVISE_PLAN_SEARCH_H
#define DPT_ADVISE_PLAN_SEARCH_H

#include <stdint.h>

#include "trainer/advise/advise.h"

enum search_goal { SEARCH_SPEED, SEARCH_MEMORY, SEARCH_RANKS };

enum search_offload { OFFLOAD_NONE, OFFLOAD_OPTIMIZER, OFFLOAD_STATE /* parameters too */, OFFLOAD_COUNT };

struct search_plan {
	enum advise_id strategy;
	struct advise_layout layout;
	int64_t batch_size; /* of a rank, in one forward pass */
	int64_t accum;	    /* passes of a step; 1 with a pipeline, which has layout.micros */
	int recompute;	    /* enum recompute of trainer/graph/pass.h */
	int precision;	    /* number that the caller gave */
	enum search_offload offload;
	struct advise_cost cost;
	double bytes;	    /* of a rank's device, as planned */
	double peak_bytes;  /* with what its process takes beside them */
	double seconds;	    /* of a step; no faster than the loader */
	double samples_per_s;
	double aco;	    /* exposed communication seconds by per-device batch */
	bool fits, built;   /* built: the program can start it */
	bool whole;	    /* bytes are those that the passes plan, not the formulas' */
	const char *limit;  /* what takes most time, or "memory" */
};

struct search_opts {
	const struct hardware *hardware;
	int nodes, ranks_per_node; /* at most */
	int64_t global_batch;
	const int *precisions;
	int n_precisions;
	double bucket_bytes;
	double data_bytes; /* that reading the set holds in each rank */
	int threads; /* that each rank has, however many there are; 0: its part of all, which ranks_per_node have */
	double memory_bytes; /* of a device, or of the machine where ranks share it; 0: as the hardware says */
	unsigned wanted;     /* strategies that are looked at, a bit each by enum advise_id */
	unsigned built;	     /* strategies that the program has */
	/* What the model costs at that size; ERR_USAGE: it cannot be had so, and is left out. */
	int (*model)(void *user, int64_t micro, int recompute, int precision, struct advise_model *ret,
		     struct err *err);
	void *user;
};

struct plan_search {
	struct search_plan *plans; /* the best first: those that fit and are built, then the others */
	int n;
};

int search_all(struct plan_search *ret, const struct search_opts *o, enum search_goal goal, struct err *err);
void search_done(struct plan_search *s);

/* The bytes of plan i are known now, as the passes plan them: they stand for what the formulas say, and it finds its
 * place anew. planned NULL: it cannot be had, and is dropped. */
void search_correct(struct plan_search *s, int i, const struct search_opts *o, enum search_goal goal,
		    const struct advise_cost *planned);

/* The first of its strategy (with its stage or stages), ranks and recomputation, of those as they stand. */
bool search_is_best_of_kind(const struct plan_search *s, int i);

/* The number of things in which two plans differ: strategy (with its stage or stages), ranks, micro-batch,
 * recomputation, offload, precision. */
int search_distance(const struct search_plan *a, const struct search_plan *b);

#endif
