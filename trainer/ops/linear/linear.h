/* linear.h: y = x w^T + b. x [N,C], w [K,C], b [K] (optional), y [N,K].
 *   linear        in x, w, b  out y       (master type when it feeds the loss, low between layers: attr)
 *   linear_dgrad  in dy, w    out dx
 *   linear_wgrad  in x, dy    out dw, db  (master type, summed over the rows; db absent without a bias) */
#ifndef DPT_OPS_LINEAR_H
#define DPT_OPS_LINEAR_H

#include "trainer/graph/graph.h"

struct linear_attr {
	bool low; /* y is of the low type */
};

/* A classifier: y in the master type. */
struct tensor *linear_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

/* A layer between others: y in the low type. b may be NULL. */
struct tensor *linear_add_low(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

#endif
