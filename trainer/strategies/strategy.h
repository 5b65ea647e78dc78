/* strategy.h: how ranks share the work of a training graph: a pass that adds collectives. It knows ops and tensors,
 * nothing of transports, memory or the loop. Runs after the backward pass and the types are settled and before the
 * optimiser's nodes are added. */
#ifndef DPT_STRATEGIES_STRATEGY_H
#define DPT_STRATEGIES_STRATEGY_H

#include "trainer/graph/graph.h"
#include "trainer/graph/schedule.h"

/* Names of the tensors that a strategy with more than one rank leaves for the host. Results: f64 [XENT_RESULTS], the
 * sums over all ranks of what the graph's loss holds for the rank alone. Vote: f64 [1], an input that the host sets
 * before a step; votes: its sum over the ranks, known to all after the step. */
#define STRATEGY_RESULT_SUM "result.sum"
#define STRATEGY_VOTE "vote"
#define STRATEGY_VOTES "vote.sum"

struct strategy_opts {
	int rank, world;
	size_t bucket_bytes; /* at most, unless one gradient is larger */
	bool sync_bn;

	/* Where parameters are shared out (fsdp; pdp over the pipelines). */
	int zero_stage;	       /* 1: moments, 2: gradients too, 3: parameters too; 0: nothing (pdp) */
	bool unit_is_layer;    /* each matrix is a unit of its own; else each block of the model is one */
	int shard_degree;      /* ranks that hold one copy together; neighbours, of pdp in a stage of every pipeline */
	bool reshard;	       /* what was gathered for the forward pass is dropped, and gathered again */
	int gather_prefetch;   /* units ahead of the one that is computed */
	bool sync_each_batch;  /* of several micro-batches each sends its gradients (stages 2 and 3) */
	const struct graph *model; /* as lay left it */

	int devices; /* of the one process (dp) */

	/* Pipelines (pdp). */
	int stages;	       /* of a pipeline: adjacent ranks */
	bool gpipe;	       /* all micro-batches forward, then all backward; else 1F1B */
	const char *partition; /* blocks of each stage, "3,4,5"; NULL: by their work */
	int micros;	       /* micro-batches that a pipeline's samples are cut into */

	/* Sums along the tree of leaves (graph/leaves.h): the same bits for every world. */
	int64_t leaf; /* samples of one */
	enum group dealt_to; /* whose ranks they are dealt to */
	int room;  /* terms that a rank may have, 1 where no step has several micro-batches; 0: sums in the order
		    * of ranks and micro-batches */
	int roots; /* that this rank has in the end of a full step: it sends so many */

	/* Of the program. */
	bool more_follow; /* it is a micro-batch before a step's last: gradients are placed, not summed yet */
	bool accumulates; /* some step has several micro-batches, or a schedule of turns */
	bool averages;	  /* it evaluates with averages in the place of the parameters */
};

/* Elements [begin, end) of a tensor, in storage order. */
struct strategy_part {
	int64_t begin, end;
};

#define STRATEGY_GROUP(group) (1u << (group))

struct strategy {
	/* Optional: writes into the parameters of the model, a training graph of one rank that holds everything (or an
	 * evaluation's, where nothing is trained), which ranges ranks hold: tensor->shard. Moments follow them. */
	int (*lay)(struct graph *model, const struct strategy_opts *o, struct err *err);
	/* Adds what the ranks tell each other to a graph of training or evaluation. o->world is what strategies.def
	 * allows. */
	int (*rewrite)(struct graph *g, const struct strategy_opts *o, struct err *err);
	/* Optional: what that rank holds of a persistent tensor of the model, between steps; its memory of the tensor
	 * begins with the first of these elements. Together the ranks hold all of it; several may hold the same.
	 * Answers alike on every rank. NULL: every rank holds everything. trainer/state/tensors.c asks. */
	struct strategy_part (*holds)(const struct tensor *t, const struct strategy_opts *o, int rank);
	/* The groups that its nodes on each stream meet, a bit (STRATEGY_GROUP) each: every one has a communicator of
	 * its own. A collective node that meets another is refused. */
	unsigned groups[STREAM_COUNT];
	/* Optional: the number of that rank's group among those of a kind other than GROUP_WORLD; -1: it is in none.
	 * Inside, ranks are numbered in the world's order. Answers alike on every rank. */
	int (*group_of)(const struct strategy_opts *o, enum group kind, int rank);
	/* Optional, both or none: a step's samples are cut into equal micro-batches of that size, which one schedule
	 * makes in these turns (schedule_turns of them). */
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

#endif
