/* SPDX-License-Identifier: Apache-2.0 */
/* linear.h: y = x w^T + b. x [N,C], w [K,C], b [K] (optional), y [N,K].
 *   linear        in x, w, b  out y       (attr.low: low type, between layers; else master type, for the loss)
 *   linear_dgrad  in dy, w    out dx
 *   linear_wgrad  in x, dy    out dw, db  (master type, summed over the rows; no db without a bias) */
#ifndef DPT_OPS_LINEAR_H
#define DPT_OPS_LINEAR_H

#include "trainer/graph/graph.h"

struct linear_attr {
	bool low; /* y has the low type */
};

/* Adds a classifier: y has the master type. */
struct tensor *linear_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* Adds an inner layer: y has the low type. b may be NULL. */
struct tensor *linear_add_low(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

#endif
