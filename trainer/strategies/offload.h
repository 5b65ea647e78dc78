/* offload.h: what a rank keeps out of the way of its compute memory between uses (SPACE_OFFLOAD): activations until the
 * backward pass, parameters, what the optimiser keeps. A pass behind the strategy and the optimiser: each use reads a
 * copy in memory that is the neighbours' again afterwards; copies run ahead on streams of their own, so that one
 * stretch of the program (a block of the model, the step of a parameter) is copied while the one before is computed.
 * The maths stay: copies hold the same bits. */
#ifndef DPT_STRATEGIES_OFFLOAD_H
#define DPT_STRATEGIES_OFFLOAD_H

#include "trainer/graph/graph.h"

/* Tensors of fewer bytes stay where they are: less than a page would be gained. */
#define OFFLOAD_LEAST_BYTES 4096

struct offload_opts {
	bool activations; /* what the backward pass reads, of all blocks but the last one, which it begins with */
	bool params;
	bool optimizer;	  /* moments and averages */
	bool averages;	  /* of the program: it evaluates with averages in the place of the parameters */
	bool file;	  /* see struct copy_attr */
};

int offload_add(struct graph *g, const struct offload_opts *o, struct err *err);

#endif
