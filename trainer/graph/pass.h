/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h: the passes over one graph, one file each. trainer/program/program.c lists them in order. */
#ifndef DPT_GRAPH_PASS_H
#define DPT_GRAPH_PASS_H

#include "trainer/graph/kernel.h"
#include "trainer/graph/op.h"

/* Runs every node's shape rule again: outputs exist and their shapes match. */
int pass_shape(struct graph *g, struct err *err);

/* Appends the backward nodes of g->loss in reverse order and sets ->grad of every parameter that contributes to it.
 * sum: the op that adds several gradients of one tensor. */
int pass_grad(struct graph *g, const struct op *sum, struct err *err);

/* Lets ops absorb their neighbours until nothing changes, then removes dead nodes. */
int pass_fuse(struct graph *g, struct err *err);

/* Removes nodes whose results are unused, not kept, not persistent and neither a parameter's gradient nor a result. */
void pass_dead(struct graph *g);

/* Gives each operand the type its op requests; inserts one node of op cast per tensor and type. */
int pass_precision(struct graph *g, const struct precision *p, const struct op *cast, struct err *err);

/* The same by a table of casts (precision.casts). Copies that the model reads in place of masters keep their memory. */
int pass_cast_table(struct graph *g, const struct cast_table *table, const struct op *cast, struct err *err);

/* Inserts a cast of t in front of `user`, in the same part of the program. Returns the new tensor "<t>.<type>", or NULL
 * once the graph failed. */
struct tensor *pass_cast_before(struct graph *g, const struct op *cast, struct tensor *t, enum dtype to,
				const struct node *user);

/* Which activations the backward pass recomputes: none; those whose op is cheap; all except those that cross from one
 * block of the model to another. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL };

/* Inserts the clones and connects them to the backward nodes. Runs after fusion and precision, before strategies. */
int pass_recompute(struct graph *g, enum recompute mode, struct err *err);

struct pack_attr { /* of a pack node: the input it feeds; see trainer/ops/pack/pack.h */
	const struct node *consumer;
	int index;
};

struct layout_backend {
	const struct kernel *const *kernels; /* indexed by op id */
	const struct kernel_env *env;
	const struct op *pack; /* the op of pack nodes */
	const struct op *cast; /* the op of casts that pass_precision inserts */
	bool plain_f16;	       /* nodes with f16 operands use the plain layout */
};

/* Inserts a pack node where the backend's kernel wants an input in its own layout. Absorbs a cast in front of it. */
int pass_layout(struct graph *g, const struct layout_backend *b, struct err *err);

#endif
