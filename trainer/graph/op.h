/* SPDX-License-Identifier: Apache-2.0 */
/* op.h: the graph's view of an op: one const struct op per line of trainer/ops/ops.def, in the op's folder. */
#ifndef DPT_GRAPH_OP_H
#define DPT_GRAPH_OP_H

#include "trainer/graph/graph.h"

/* The types of a run: low for arithmetic that tolerates 16 bits; master for parameters, moments, gradients of
 * parameters and everything sensitive. f64/f64 on ref, f32/f32 or bf16/f32 elsewhere. Reductions (statistics, losses,
 * norms) are always f64 tensors. */
struct precision {
	enum dtype low;
	enum dtype master;
	const struct cast_table *casts; /* replaces the classes of ops by a table; NULL: the classes decide */
};

/* The type of an op's activations in a table of casts, see trainer/ops/casts.def. */
enum cast_rule { CAST_KEEPS, CAST_F16, CAST_ALL16, CAST_F32, CAST_WIDEST };

#define CAST_STORES_NONE (-1)

struct cast_table {
	const enum cast_rule *rule; /* by op id */
	int weight, norm;	    /* enum dtype: parameters as the model reads them */
	int master;		    /* enum dtype of copies that the optimiser updates, or CAST_STORES_NONE */
	int weight_grad, norm_grad; /* enum dtype */
};

enum dtype_class { DTYPE_CLASS_KEEP /* unchanged */, DTYPE_CLASS_LOW, DTYPE_CLASS_MASTER };

/* The cost of running an op's forward node again in the backward pass. */
enum recompute_class {
	RECOMPUTE_COSTLY, /* matrix products, convolutions: recomputed only with full recomputation */
	RECOMPUTE_CHEAP,  /* cheap compared with the memory it saves */
	RECOMPUTE_NEVER	  /* results are reduced between ranks, or effects must happen once */
};

struct op {
	const char *name;
	int id; /* OP_<name> of trainer/ops/ops.h: index of kernel tables */

	/* Checks inputs and creates NULL outputs. Returns 0, or calls graph_fail and returns its code. */
	int (*shape)(struct graph *g, struct node *n);

	/* Adds the backward nodes of n: reads graph_grad_get of its outputs, calls graph_grad_add for its inputs;
	 * parameters get ->grad. NULL: not differentiable. */
	int (*grad)(struct graph *g, struct node *n);

	/* Tries to absorb neighbours of n (batch norm absorbs a following add and ReLU, or the sum of two gradients).
	 * Returns true if it changed the graph; called until nothing changes. NULL: never. */
	bool (*fuse)(struct graph *g, struct node *n);

	/* Type class of an operand (is_out false: an input). NULL: LOW for every float operand. */
	enum dtype_class (*dtype)(const struct node *n, bool is_out, int index);

	/* Index of the input whose memory output `out` may reuse after its last use; -1 for none. NULL: never. This is
	 * the only declaration of aliasing. */
	int (*inplace)(const struct node *n, int out);

	enum recompute_class recompute;

	/* A collective over ranks: its time counts as communication, and it uses kernel_env.comm. */
	bool collective;

	/* Runs only in watched steps (page.watch). */
	bool watches;

	/* Appends attributes to a dump line (" stride=2"). NULL: none. */
	void (*dump)(const struct node *n, struct buf *out);

	/* Floating-point operations of one run, for the rates that bench prints. NULL: 0, not a matrix product. */
	double (*flops)(const struct node *n);

	/* Operations as PyTorch's FLOP counter counts them, if different: it includes masked elements and excludes
	 * recomputed products. NULL: same as flops. */
	double (*counted)(const struct node *n);

	/* Minimum bytes that one run reads and writes, if not every operand entirely. NULL: all operands. */
	double (*touched)(const struct node *n);
};

/* Rules that several ops share, in op.c: operands keep their type; low inputs are summed into master outputs; output i
 * may overwrite input i. */
enum dtype_class op_dtype_keep(const struct node *n, bool is_out, int index);
enum dtype_class op_dtype_sums(const struct node *n, bool is_out, int index);
int op_inplace_same(const struct node *n, int out);

double op_flops(const struct node *n); /* 0: none or unknown */
double op_counted(const struct node *n);
double op_operands(const struct node *n); /* bytes of all inputs and outputs */
double op_touched(const struct node *n);

/* Adds optimiser state "<param>.<suffix>" with the parameter's shape, range and type, initially zero. */
struct tensor *op_moment(struct graph *g, const struct tensor *param, const char *suffix);

#endif
