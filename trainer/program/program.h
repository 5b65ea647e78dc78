/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: a model at one batch size, compiled by the passes into a schedule of prepared kernels. It has no memory
 * yet. */
#ifndef DPT_PROGRAM_PROGRAM_H
#define DPT_PROGRAM_PROGRAM_H

#include "trainer/graph/pass.h"
#include "trainer/models/models.h"
#include "trainer/program/devices.h"
#include "trainer/program/optimizer.h"
#include "trainer/strategies/strategy.h"

enum program_kind {
	PROGRAM_STEP,  /* a whole optimiser step, or the last micro-batch of one */
	PROGRAM_MICRO, /* an earlier micro-batch: adds to the sums that the last one uses */
	PROGRAM_EVAL
};

/* Options that all programs of a run share. */
struct program_opts {
	const struct model *model;
	struct model_config config;
	struct precision precision;
	const struct backend *backend;
	void *module; /* result of backend->open */
	const struct strategy *strategy;
	struct strategy_opts sharing;
	struct optimizer_opts optimizer;
	const char *freeze; /* see graph_frozen; NULL */
	bool low_frozen;    /* see struct graph */
	bool exact;	    /* see struct graph */
	bool keep_grads;    /* gradients stay readable after the step */
	bool node_by_node;  /* device programs are not recorded as graphs */
	enum recompute recompute;
	struct offload_opts offload;		      /* averages is set for each program */
	const char *offload_dir;		      /* folder of the offload file; NULL: memory */
	bool sizes_only;			      /* a plan of which only sizes are read: nothing is placed */
	struct graph *known_model;		      /* see struct rank */
	bool accumulate;			      /* some step has several micro-batches */
	struct kernel_env env;			      /* environment of kernels without communication */
	struct comm *comm;			      /* communicator of all ranks; NULL: none (a plan) */
	struct comm *lane[STREAM_COUNT][GROUP_COUNT]; /* communicator of a stream and group */
	struct devices *devices;		      /* communicators between devices; NULL: between hosts, or none */
};

struct program {
	char name[32]; /* "train-128", "micro-32", "eval-16" */
	int64_t batch; /* samples */
	int64_t micro; /* samples in each slot of its schedule */
	enum program_kind kind;
	struct graph *graph;
	struct schedule schedule;
	void **state; /* state of node i's kernel; owned */

	/* Tensors that the host writes or reads; NULL where the program has none. */
	struct tensor *inputs, *targets, *logits; /* inputs: "images" or "tokens"; targets: "labels" or "targets" */
	struct tensor *best;			  /* words of the largest logits of each row; evaluation of chat data */
	struct tensor *result;			  /* sums over this rank's samples, of the whole step so far */
	struct tensor *result_sum;		  /* over all ranks (PROGRAM_STEP); result itself with one rank */
	struct tensor *losses;			  /* loss of each row of a micro-batch (optimizer.h) */
	struct tensor *grad_norm;
	struct tensor *optimizer; /* state of trainer/ops/step_guard */
	struct tensor *vote, *votes;
};

/* Builds the model as if one rank owned it: a graph with every persistent tensor of a run whole, and the strategy's
 * partition of them. It has no memory and is not run. kind: PROGRAM_STEP for a run that trains, else PROGRAM_EVAL. */
int program_model(struct graph **ret, const struct program_opts *o, int64_t batch, enum program_kind kind,
		  struct err *err);

/* o is borrowed until program_free. */
int program_new(struct program **ret, const struct program_opts *o, int64_t batch, enum program_kind kind,
		struct err *err);
void program_free(struct program *p, const struct program_opts *o); /* NULL is fine */

/* Refuses a training program with a batch norm over a single value for each channel: its output is constant, so nothing
 * in front of it learns. ranks: how many share their batch norms. ERR_USAGE names the node and the sizes. */
int program_check_norms(const struct program *p, int ranks, const struct program_opts *o, struct err *err);

const struct kernel *program_kernel(const struct program_opts *o, const struct node *n);

#endif
