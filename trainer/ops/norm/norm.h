/* norm.h: the global gradient norm. sumsq: in g out f64 [1] = sum of squares. norm: in any number of f64 [1] out f64
 * [1] (result "grad_norm") = sqrt of their sum, divided by page.loss_scale; with attributes the sum itself. */
#ifndef DPT_OPS_NORM_H
#define DPT_OPS_NORM_H

#include "trainer/graph/graph.h"

struct norm_attr { /* optional */
	bool sum; /* no root is taken: other ranks have more to add */
};

/* "<t>.sumsq" of a tensor, added when it is not there yet; NULL once the graph failed. Of a range of a tensor it is the
 * sum of the whole one: over the ranks that hold it. */
struct tensor *norm_sumsq(struct graph *g, struct tensor *t);

/* Adds sumsq of every parameter's gradient, sums over ranks where these hold ranges, and the norm node; returns
 * "grad_norm", NULL once the graph failed. pipeline: the parameters lie on the stages of one, the norm is of all. */
struct tensor *norm_add_all(struct graph *g, bool pipeline);

#endif
