/* pass.h: the passes over one graph; trainer/program/program.c holds their order in one array. Each is a file. */
#ifndef DPT_GRAPH_PASS_H
#define DPT_GRAPH_PASS_H

#include "trainer/graph/graph.h"
#include "trainer/graph/kernel.h"
#include "trainer/graph/op.h"

/* Runs every node's shape rule again: outputs exist and agree. */
int pass_shape(struct graph *g, struct err *err);

/* Appends the backward nodes of g->loss in reverse order; sets ->grad of every parameter that it reaches. sum: the op
 * that adds gradients that meet. */
int pass_grad(struct graph *g, const struct op *sum, struct err *err);

/* Lets ops absorb their neighbours until nothing changes; removes what became dead. */
int pass_fuse(struct graph *g, struct err *err);

/* Removes nodes whose results nobody needs: no use, not kept, not persistent, no gradient of a parameter, no result. */
int pass_dead(struct graph *g, struct err *err);

/* Gives each operand the type its op asks for; inserts one node of the op cast per tensor and type. */
int pass_precision(struct graph *g, const struct precision *p, const struct op *cast, struct err *err);

/* A cast of t in front of the node that wants it, of whose part of the program it is; the new tensor, named
 * "<t>.<type>", or NULL once the graph failed. */
struct tensor *pass_cast_before(struct graph *g, const struct op *cast, struct tensor *t, enum dtype to,
				const struct node *user);

/* Which activations are computed again in the backward pass: none; what ops call cheap; all but what crosses from one
 * block of the model to another. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };

/* Makes the clones and hands them to the backward nodes. Behind fusion and types, before strategies. */
int pass_recompute(struct graph *g, enum recompute mode, struct err *err);

struct pack_attr { /* of a pack node: whose input it feeds; see trainer/ops/pack/pack.h */
	const struct node *consumer;
	int index;
};

struct layout_backend {
	const struct kernel *const *kernels; /* indexed by op id */
	const struct kernel_env *env;
	const struct op *pack; /* the op of pack nodes */
	const struct op *cast; /* of the nodes that pass_precision put in */
	bool plain_f16;	       /* nodes with f16 operands take everything as it is */
};

/* Inserts a pack node where the backend's kernel wants an input in its own layout (a cast before it is absorbed). */
int pass_layout(struct graph *g, const struct layout_backend *b, struct err *err);

#endif
