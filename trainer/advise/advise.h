/* SPDX-License-Identifier: Apache-2.0 */
/* advise.h: estimates the cost of a configuration by formula: bytes by category, bytes sent, seconds by phase. The
 * formulas are in *_cost.c; tests/advise/formula_test.c compares it with the pass of the strategy. Knows no
 * configuration and no passes of a graph: a model is the cost of its blocks, a machine is its hardware file
 * (hardware.h).
 *
 * Bytes and seconds are those of the rank that needs most, in one optimiser step. Memory may peak at two moments: at
 * the turn, when all activations wait for the backward pass and few gradients exist, and at the end of the backward
 * pass. */
#ifndef DPT_ADVISE_ADVISE_H
#define DPT_ADVISE_ADVISE_H

#include "trainer/advise/hardware.h"
#include "trainer/graph/plan.h"

/* A part of a model: one of its blocks, or the layers before them (front) or after them (back). Seconds are for one
 * micro-batch. */
struct advise_part {
	double trained;		      /* elements with a gradient; frozen parameters and statistics have none */
	double largest;		      /* elements of the largest trained parameter */
	double stored_bytes;	      /* all parameters in the types in which they are kept */
	double copied_bytes;	      /* the part of stored_bytes that nodes read in another type */
	double read_bytes;	      /* parameters in the types in which nodes read them */
	double cast_bytes;	      /* the part of read_bytes that are copies in another type */
	double kept_bytes;	      /* activations of one micro-batch that wait for the backward pass */
	double forward_s, backward_s; /* recomputation counts to the backward pass */
	double update_s;	      /* optimiser, all its parameters */
};

/* A model at one micro-batch size, precision and kind of recomputation. */
struct advise_model {
	int blocks;
	struct advise_part front, block, back;
	double tied_bytes;   /* stored, of an embedding that front and back share; counted in front */
	double tied_trained; /* its elements with a gradient */
	double master_bytes; /* size of an element of a trained parameter, its gradient and each of its moments */
	double moments;	     /* moments of the optimiser per trained parameter */
	double work_bytes;   /* activations at the turn in addition to the kept ones */
	double workspace_bytes;
	double stage_bytes, stage_workspace_bytes; /* the same for a stage of a pipeline without the loss */
	double input_bytes;			   /* of one micro-batch */
	double cross_bytes;			   /* activations that a block passes to the next, of one micro-batch */
	double cross_back_bytes;		   /* gradients that it receives for them */
};

struct advise_layout {
	int ranks, nodes; /* nodes: machines */
	int micros;	  /* micro-batches of a step: a rank's, or a pipeline's */
	int zero_stage, shard_degree, prefetch;
	bool sync_each_batch; /* each micro-batch reduces its gradients */
	int devices;	      /* devices of the single process (dp); 0: not wanted */
	int stages;
	bool gpipe;
	double bucket_bytes;
	bool offload_params, offload_optimizer, offload_activations; /* offload to host memory */
};

enum advise_collective { ADVISE_ALLREDUCE, ADVISE_ALL_GATHER, ADVISE_REDUCE_SCATTER, ADVISE_PEER, ADVISE_COLLECTIVES };

struct advise_cost {
	double bytes[PLAN_CATEGORY_COUNT]; /* bytes on the rank's device */
	double host_bytes;		   /* host memory for offloaded tensors */
	/* For offloading: parameters that are on the device at once; casts of blocks among the activations; gradients
	 * that are made while activations are freed. */
	double stays_bytes, casts_bytes, late_bytes;
	double sent[ADVISE_COLLECTIVES]; /* bytes that leave a rank in a step */
	double forward_s, backward_s, comm_exposed_s, bubble_s, optimizer_s, copy_exposed_s;
	double comm_s;		 /* time of all collectives, hidden or not */
	int stage;		 /* stage of a pipeline that needs most memory */
	int blocks, last_blocks; /* pipeline: blocks of the model and of its last stage (advise_stage_blocks) */
};

struct advise {
	const char *name;
	/* Returns true if the strategy supports the layout: numbers of ranks and stages. */
	bool (*takes)(const struct advise_model *m, const struct advise_layout *l);
	/* Fills bytes and sent for a stage of a pipeline (0 for other strategies). */
	void (*state)(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l, int stage);
	/* Fills the seconds; called after state. */
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

/* Fills *ret; for a pipeline, with the bytes of the stage that needs most. h NULL: no seconds. */
void advise_cost(struct advise_cost *ret, enum advise_id id, const struct advise_model *m,
		 const struct advise_layout *l, const struct hardware *h);

/* Returns the blocks of a stage of a pipeline whose last stage has last_blocks. */
int advise_stage_blocks(int blocks, int last_blocks, int stages, int stage);

double advise_bytes(const struct advise_cost *c);   /* total of the device */
double advise_seconds(const struct advise_cost *c); /* total of the step */

/* Helpers for the formulas of the strategies. */
double advise_stored_bytes(const struct advise_model *m); /* of all parameters, a tied embedding once */
double advise_copied_bytes(const struct advise_model *m);
double advise_gradient_bytes(const struct advise_model *m);
double advise_turn_stored_bytes(const struct advise_model *m); /* after the blocks, including a tied embedding */
double advise_turn_gradient_bytes(const struct advise_model *m);
double advise_forward_s(const struct advise_model *m);
double advise_backward_s(const struct advise_model *m);
double advise_update_s(const struct advise_model *m);

/* Fills activations, workspace and inputs of a rank that computes the whole model; casts: it casts whole parameters. */
void advise_activations(struct advise_cost *ret, const struct advise_model *m, bool casts);

/* Returns the bytes that each rank sends in a ring: a sum sends everything twice, other collectives once. */
double advise_ring(double bytes, double ranks, bool sum);

/* Fills the seconds of forward, backward and optimiser of a rank that computes the whole model, micros times. */
void advise_compute(struct advise_cost *ret, const struct advise_model *m, const struct advise_layout *l);

/* Returns the exposed part of comm_s seconds if they overlap hidden_s of other work, and tail_s of them come after
 * it. */
double advise_exposed(const struct hardware *h, double comm_s, double hidden_s, double tail_s);

#endif
