/* norm.h: the global gradient norm.
 *   sumsq    in g                      out f64 [1] = sum of squares
 *   squares  in g                      out f64: the sum of squares of each SQUARES_BLOCK elements (the last block may
 *                                      be shorter)
 *   exact    in f64 [n], not negative  out i64 [EXACT_WORDS] (exact.h): their sum, not rounded
 *   norm     in any number of f64 [1], or of exact sums, out f64 [1] (result "grad_norm") = square root of their sum,
 *            divided by page.loss_scale; with attributes the sum itself
 * With graph->exact, sums of squares are exact ones of blocks: their bits do not depend on which rank holds which range
 * of a tensor, as ranges begin at multiples of a block. */
#ifndef DPT_OPS_NORM_H
#define DPT_OPS_NORM_H

#include "trainer/graph/graph.h"

#define SQUARES_BLOCK 128

struct norm_attr { /* optional */
	bool sum;    /* no root is taken, and an exact sum stays one: other ranks have more to add */
	bool square; /* no root is taken */
};

/* "<t>.sumsq" of a tensor, added when it is not there yet; NULL once the graph failed. Of a range of a tensor it is the
 * sum of the whole one: over the ranks that hold it. */
struct tensor *norm_sumsq(struct graph *g, struct tensor *t);

/* Adds sumsq of every parameter's gradient, sums over ranks where these hold ranges, and the norm node; returns
 * "grad_norm", NULL once the graph failed. pipeline: the parameters lie on the stages of one, the norm is of all. */
struct tensor *norm_add_all(struct graph *g, bool pipeline);

#endif
