/* linear.h: y = x w^T + b. x [N,C], w [K,C], b [K], y [N,K] (y in the master type: it feeds the loss).
 *   linear        in x, w, b  out y
 *   linear_dgrad  in dy, w    out dx
 *   linear_wgrad  in x, dy    out dw, db  (master type, summed over the batch) */
#ifndef DPT_OPS_LINEAR_H
#define DPT_OPS_LINEAR_H

#include "trainer/graph/graph.h"

struct tensor *linear_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *b);

#endif
