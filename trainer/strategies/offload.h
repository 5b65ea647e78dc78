/* SPDX-License-Identifier: Apache-2.0 */
/* offload.h: moves tensors out of a rank's compute memory between uses (SPACE_OFFLOAD): activations until the backward
 * pass, parameters, the optimiser's state. The pass runs after those of the strategy and the optimiser. Each use reads
 * a copy in memory that other tensors use afterwards. Copies run ahead on streams of their own, so that one stretch of
 * the program (a block of the model, the update of a parameter) is copied while the one before is computed. Copies have
 * the same bits, so results do not change. */
#ifndef DPT_STRATEGIES_OFFLOAD_H
#define DPT_STRATEGIES_OFFLOAD_H

#include "trainer/graph/graph.h"

/* Smaller tensors are not offloaded: they would gain less than a page. */
#define OFFLOAD_LEAST_BYTES 4096

struct offload_opts {
	/* activations that the backward pass reads, of all blocks but the last one, where it begins */
	bool activations;
	bool params;
	bool optimizer;	  /* moments and averages */
	bool averages;	  /* the program evaluates with averages instead of the parameters */
	bool file;	  /* see struct copy_attr */
};

int offload_add(struct graph *g, const struct offload_opts *o, struct err *err);

#endif
