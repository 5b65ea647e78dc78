/* SPDX-License-Identifier: Apache-2.0 */
/* norm.h: the global gradient norm.
 *   sumsq    in g                      out f64 [1] = sum of squares
 *   squares  in g                      out f64: the sum of squares of each block of SQUARES_BLOCK elements (the last
 *                                      block may be shorter)
 *   exact    in f64 [n], not negative  out i64 [EXACT_WORDS] (exact.h): their sum, not rounded
 *   norm     in any number of f64 [1], or of exact sums, out f64 [1] (result "grad_norm") = square root of their sum,
 *            divided by page.loss_scale; with attributes the sum itself
 * With graph->exact, sums of squares are exact sums of blocks. Their bits do not depend on which rank holds which range
 * of a tensor, since ranges start at multiples of a block. */
#ifndef DPT_OPS_NORM_H
#define DPT_OPS_NORM_H

#include "trainer/graph/graph.h"

#define SQUARES_BLOCK 128

struct norm_attr {   /* optional */
	bool sum;    /* no square root; an exact sum remains exact, since other ranks add to it */
	bool square; /* no square root */
};

/* Returns "<t>.sumsq", adding it at the first call; NULL once the graph failed. For a sharded tensor it is the sum over
 * all its ranges, reduced over the ranks. */
struct tensor *norm_sumsq(struct graph *g, struct tensor *t);

/* Adds sumsq of every parameter's gradient, reductions over the ranks for sharded ones, and the norm node. Returns
 * "grad_norm"; NULL once the graph failed. pipeline: parameters are distributed over stages, and the norm covers all
 * stages. */
struct tensor *norm_add_all(struct graph *g, bool pipeline);

#endif
