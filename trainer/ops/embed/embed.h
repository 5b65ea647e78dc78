/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h: token and learned position embedding: row (n, t) of x is scale * wte[tokens[n, t]] + wpe[t].
 *   embed       in tokens i32 [N,T], wte [V,C], wpe [P,C], P >= T (optional)   out x [N*T,C]
 *   embed_grad  in dx, tokens, more (optional, [V,C])   out dwte [V,C], dwpe [P,C] (not without wpe)  (master type)
 * dwte = more + the rows of scale * dx, added to their tokens' rows in batch order. `more` is the gradient of the same
 * table from elsewhere (a tied classifier); dwte may reuse its memory. The loader ensures that tokens are in [0, V).
 * wte and wpe are read in their stored types. */
#ifndef DPT_OPS_EMBED_H
#define DPT_OPS_EMBED_H

#include "trainer/graph/graph.h"

struct embed_attr {
	int64_t vocab, positions; /* V, P; positions 0: no wpe */
	double scale;
};

/* wpe may be NULL. */
struct tensor *embed_add(struct graph *g, struct tensor *tokens, struct tensor *wte, struct tensor *wpe, double scale);

#endif
