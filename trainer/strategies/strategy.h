/* SPDX-License-Identifier: Apache-2.0 */
/* strategy.h: how ranks share the work of a training graph: a pass that adds collectives. It knows ops and tensors,
 * nothing of transports, memory or the loop. Runs after the backward pass and the dtypes are final and before the
 * optimiser's nodes are added. */
#ifndef DPT_STRATEGIES_STRATEGY_H
#define DPT_STRATEGIES_STRATEGY_H

#include "trainer/graph/schedule.h"

/* Names of the tensors that a strategy with more than one rank provides for the host. Results: f64 [XENT_RESULTS], the
 * sums over all ranks of what the graph's loss has for one rank. Vote: f64 [1], an input that the host sets before a
 * step; votes: its sum over the ranks, known to all after the step. */
#define STRATEGY_RESULT_SUM "result.sum"
#define STRATEGY_VOTE "vote"
#define STRATEGY_VOTES "vote.sum"

struct strategy_opts {
	int rank, world;
	size_t bucket_bytes; /* at most, unless one gradient is larger */
	bool sync_bn;

	/* Sharding of parameters (fsdp; pdp over the pipelines). */
	int zero_stage;	    /* 1: moments, 2: gradients too, 3: parameters too; 0: nothing (pdp) */
	bool unit_is_layer; /* each matrix is a unit; else each block of the model is one */
	/* ranks that own one copy together: adjacent ones; in pdp those of a stage in all pipelines */
	int shard_degree;
	bool reshard;		   /* gathered parameters are dropped after the forward pass and gathered again */
	int gather_prefetch;	   /* units gathered ahead of the one that is computed */
	bool sync_each_batch;	   /* each micro-batch sends its gradients (stages 2 and 3) */
	const struct graph *model; /* after the strategy's partition */

	int devices; /* devices of the single process (dp) */

	/* Pipelines (pdp). */
	int stages;	       /* stages of a pipeline: adjacent ranks */
	bool gpipe;	       /* all micro-batches forward, then all backward; else 1F1B */
	const char *partition; /* blocks of each stage, "3,4,5"; NULL: by their work */
	int micros;	       /* micro-batches into which a pipeline's samples are cut */

	/* Sums along the reduction tree (graph/leaves.h): the same bits for every number of ranks. */
	int64_t leaf;	     /* samples of a leaf */
	enum group dealt_to; /* group whose ranks share the leaves */
	int room;  /* terms that a rank may have, 1 where no step has several micro-batches; 0: sums in the order
		    * of ranks and micro-batches */
	int roots; /* roots of this rank at the end of a full step: it sends that many */

	/* Of the program. */
	bool more_follow; /* a micro-batch before a step's last: gradients are placed, not summed yet */
	bool accumulates; /* some step has several micro-batches, or a pipeline schedule */
	bool averages;	  /* evaluates with averages instead of the parameters */
};

/* The share of a rank: adjacent ranks are the stages of a pipeline, and each pipeline computes one of the equal parts
 * of every batch (range_part). Without pipelines (stages at most 1) every rank has its own part. */
struct strategy_share {
	int part, parts; /* of the samples */
	int stage;	 /* of its pipeline */
};

struct strategy_share strategy_share(int rank, int world, int stages);

/* Elements [begin, end) of a tensor, in storage order. */
struct strategy_part {
	int64_t begin, end;
};

#define STRATEGY_GROUP(group) (1u << (group))

struct strategy {
	/* Optional: sets tensor->shard in the parameters of the model, a training graph as if one rank owned everything
	 * (or an evaluation graph, without training): the ranges that ranks own. Moments follow their parameters. */
	int (*lay)(struct graph *model, const struct strategy_opts *o, struct err *err);
	/* Adds the communication between ranks to a training or evaluation graph. o->world is one that strategies.def
	 * allows. */
	int (*rewrite)(struct graph *g, const struct strategy_opts *o, struct err *err);
	/* Optional: the part of a persistent tensor of the model that a rank owns between steps; its memory of the
	 * tensor begins with the first of these elements. The ranks together own all of it; several may own the same
	 * part. Gives equal results on every rank. NULL: every rank owns everything. Called by prepared_held
	 * (trainer/program/prepare.c). */
	struct strategy_part (*holds)(const struct tensor *t, const struct strategy_opts *o, int rank);
	/* The groups with which its nodes on each stream communicate, a bit (STRATEGY_GROUP) each: every one has its
	 * own communicator. A collective node with another group is refused. */
	unsigned groups[STREAM_COUNT];
	/* Optional: the number of that rank's group among those of a kind other than GROUP_WORLD; -1: it is in none.
	 * Ranks in a group are numbered in the world's order. Gives equal results on every rank. */
	int (*group_of)(const struct strategy_opts *o, enum group kind, int rank);
	/* Optional, both or none: a step's samples are cut into equal micro-batches of that size, which one schedule
	 * runs in this order (schedule_turns of them). */
	int64_t (*micro)(const struct strategy_opts *o, int64_t samples);
	void (*turns)(struct schedule_turn *ret, const struct strategy_opts *o, int micros);
};

enum strategy_id {
#define STRATEGY(name, ...) STRATEGY_##name,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
	STRATEGY_COUNT
};

extern const struct strategy *const strategies_table[STRATEGY_COUNT];

/* ---- offload.c ----
 * Moves tensors out of a rank's compute memory between uses (SPACE_OFFLOAD): activations until the backward pass,
 * parameters, the optimiser's state. The pass runs after those of the strategy and the optimiser. Each use reads a copy
 * in memory that other tensors use afterwards. Copies run ahead on streams of their own, so that one stretch of the
 * program (a block of the model, the update of a parameter) is copied while the one before is computed. Copies have the
 * same bits, so results do not change. */

/* Smaller tensors are not offloaded: they would gain less than a page. */
#define OFFLOAD_LEAST_BYTES 4096

struct offload_opts {
	/* activations that the backward pass reads, of all blocks but the last one, where it begins */
	bool activations;
	bool params;
	bool optimizer; /* moments and averages */
	bool averages;	/* the program evaluates with averages instead of the parameters */
	bool file;	/* see struct copy_attr */
};

int offload_add(struct graph *g, const struct offload_opts *o, struct err *err);

#endif
