/* op.h: what the graph knows of an op; one const struct op per line of trainer/ops/ops.def, in the op's folder. */
#ifndef DPT_GRAPH_OP_H
#define DPT_GRAPH_OP_H

#include "trainer/graph/graph.h"

/* The types of one run: low for the arithmetic that may be done in 16 bits, master for parameters, moments, gradients
 * of parameters and everything delicate. f64/f64 on ref, f32/f32 or bf16/f32 elsewhere. Reductions (statistics,
 * losses, norms) are f64 tensors always. */
struct precision {
	enum dtype low;
	enum dtype master;
};

enum dtype_class { DTYPE_CLASS_KEEP /* whatever it is */, DTYPE_CLASS_LOW, DTYPE_CLASS_MASTER };

/* What it takes to run an op's forward node a second time, in the backward pass. */
enum recompute_class {
	RECOMPUTE_COSTLY, /* a matrix product, a convolution: only where every activation is made again */
	RECOMPUTE_CHEAP,  /* little beside the memory that it saves */
	RECOMPUTE_NEVER	  /* results that others reduce between ranks, or effects that must happen once */
};

struct op {
	const char *name;
	int id; /* OP_<name> of trainer/ops/ops.h: index of kernel tables */

	/* Checks inputs, makes outputs that are NULL. Returns 0 or sets graph_fail and returns its code. */
	int (*shape)(struct graph *g, struct node *n);

	/* Adds the backward nodes of n (graph_grad_get of its outputs → graph_grad_add to its inputs, ->grad of
	 * parameters). NULL: no gradient flows through. */
	int (*grad)(struct graph *g, struct node *n);

	/* Tries to absorb neighbours of n (batch norm takes a following add and ReLU, a gradient join). Returns true
	 * when it changed the graph. NULL: never. Called until nothing changes. */
	bool (*fuse)(struct graph *g, struct node *n);

	/* Type class of an operand (input: is_out false). NULL: LOW for every float operand. */
	enum dtype_class (*dtype)(const struct node *n, bool is_out, int index);

	/* Index of the input whose memory output `out` may take over when nobody needs that input any more; -1 none.
	 * NULL: never. The one place where aliasing is declared. */
	int (*inplace)(const struct node *n, int out);

	enum recompute_class recompute;

	/* Ranks meet in it: its time is communication, and kernel_env.comm is what they meet by. */
	bool collective;

	/* It acts in watched steps alone (page.watch). */
	bool watches;

	/* Appends attributes to a dump line (" stride=2"). NULL: none. */
	void (*dump)(const struct node *n, struct buf *out);

	/* Floating-point operations of one run, for the rates that bench prints. NULL: 0, counted as "not matmul". */
	double (*flops)(const struct node *n);

	/* Where that is another number: operations of the formula, as PyTorch's counter has them, which counts what a
	 * mask leaves out and no product that is made a second time. NULL: flops. */
	double (*counted)(const struct node *n);

	/* Bytes that one run reads and writes at least, where that is not every operand as a whole. NULL: it is. */
	double (*touched)(const struct node *n);
};

/* Rules that many ops share: operands stay as they are; low inputs are summed into master outputs; output i over input
 * i. op.c. */
enum dtype_class op_dtype_keep(const struct node *n, bool is_out, int index);
enum dtype_class op_dtype_sums(const struct node *n, bool is_out, int index);
int op_inplace_same(const struct node *n, int out);

double op_flops(const struct node *n);	 /* 0: none, or not told */
double op_counted(const struct node *n);
double op_operands(const struct node *n); /* bytes of all inputs and outputs */
double op_touched(const struct node *n);

/* Adds optimiser state "<param>.<suffix>" of the parameter's shape, range and type, zero at first. */
struct tensor *op_moment(struct graph *g, const struct tensor *param, const char *suffix);

#endif
