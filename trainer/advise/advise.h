/* advise.h: what a configuration will cost, by formula: bytes by category, bytes sent, seconds by part. A file a
 * strategy; each is held to the strategy's pass by tests/advise/formula_test.c. Knows no configuration and no graph's
 * passes: a model is what its blocks cost, a machine is what its file says (hardware.h).
 *
 * Bytes and seconds are of the rank that needs most, of one optimiser step. Memory has two moments that count: the
 * turn, when all activations wait for the backward pass and few gradients are there, and the end of the backward
 * pass. */
#ifndef DPT_ADVISE_ADVISE_H
#define DPT_ADVISE_ADVISE_H

#include <stdbool.h>

#include "trainer/advise/hardware.h"
#include "trainer/graph/plan.h"

/* A part of a model: one of its blocks, or what stands before them or behind them. Seconds are of one micro-batch. */
struct advise_part {
	double params;	   /* elements; statistics count among them */
	double largest;	   /* elements of the largest of them */
	double read_bytes; /* of its parameters in the types in which nodes read them */
	double cast_bytes; /* of these, what are copies in another type */
	double kept_bytes; /* of activations that wait for the backward pass, of one micro-batch */
	double forward_s, backward_s; /* what recomputation adds counts to the backward pass */
	double update_s;   /* of all its parameters, by the optimiser */
};

/* At one size of micro-batch, in one precision, with one way of recomputation. */
struct advise_model {
	int blocks;
	struct advise_part front, block, back;
	double tied_params;	/* elements of a table that front and back share; counted in front */
	double master_bytes;	/* of a parameter, of its gradient and of each of its moments */
	double moments;		/* that the optimiser keeps of a parameter */
	bool low;		/* nodes read parameters in a type of their own */
	double work_bytes;	/* activations beside the kept ones at the turn */
	double workspace_bytes;
	double stage_bytes, stage_workspace_bytes; /* the same of a stage of a pipeline that has not the loss */
	double input_bytes; /* of one micro-batch */
	double cross_bytes;	/* what one block hands to the next, of one micro-batch */
	double cross_back_bytes; /* and gets back for it in the backward pass */
};

struct advise_layout {
	int ranks, nodes;	/* nodes: machines */
	int micros;		/* micro-batches of a step: a rank's, or a pipeline's */
	int zero_stage, shard_degree, prefetch;
	bool sync_each_batch;	/* of several micro-batches each sends its gradients */
	int devices;		/* of the one process (dp); 0: it is not asked for */
	int stages;
	bool gpipe;
	double bucket_bytes;
	bool offload_params, offload_optimizer, offload_activations; /* to the machine's own memory */
};

enum advise_collective { ADVISE_ALLREDUCE, ADVISE_ALL_GATHER, ADVISE_REDUCE_SCATTER, ADVISE_PEER, ADVISE_COLLECTIVES };

struct advise_cost {
	double bytes[PLAN_CATEGORY_COUNT]; /* of the rank's device */
	double host_bytes;		   /* of the machine's memory, where something is offloaded */
	/* For what is offloaded: of parameters what is there at once, and their blocks' copies in another type among
	 * the activations; gradients that are made while activations go. */
	double stays_bytes, casts_bytes, late_bytes;
	double sent[ADVISE_COLLECTIVES];   /* bytes that leave a rank in a step */
	double forward_s, backward_s, comm_exposed_s, bubble_s, optimizer_s, copy_exposed_s;
	double comm_s; /* of all collectives, hidden or not */
	int stage;     /* of a pipeline, the one that needs most memory */
	int blocks, last_blocks; /* of a pipeline: of the model, and of its last stage (advise_stage_blocks) */
};

struct advise {
	const char *name;
	/* Whether it can be had so: number of ranks, of stages. */
	bool (*takes)(const struct advise_model *m, const struct advise_layout *l);
	/* Fills bytes and sent of stage `stage` of a pipeline (0 elsewhere). */
	void (*state)(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage);
	/* Fills the seconds; sent is known. */
	void (*time)(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l,
		     const struct hardware *h);
};

enum advise_id {
#define ADVISE(name) ADVISE_##name,
#include "trainer/advise/advise.def"
#undef ADVISE
	ADVISE_COUNT
};

extern const struct advise *const advise_table[ADVISE_COUNT];

/* All of it; of a pipeline, bytes of the stage that needs most. h NULL: no seconds. */
void advise_cost(struct advise_cost *ret, enum advise_id id, const struct advise_model *m,
		 const struct advise_layout *l, const struct hardware *h);

/* Blocks of a stage of a pipeline, where the last one has that many of them. */
int advise_stage_blocks(int blocks, int last_blocks, int stages, int stage);

double advise_bytes(const struct advise_cost *c);   /* of the device, in all */
double advise_seconds(const struct advise_cost *c); /* of the step */

#endif
