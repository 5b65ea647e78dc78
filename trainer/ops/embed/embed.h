/* embed.h: token and learned position embedding: row (n, t) of x is wte[tokens[n, t]] + wpe[t].
 *   embed       in tokens i32 [N,T], wte [V,C], wpe [P,C], P >= T   out x [N*T,C]
 *   embed_grad  in dx, tokens, more (optional, [V,C])               out dwte [V,C], dwpe [P,C]  (master type)
 * dwte = more + the rows of dx added to their tokens' rows in the order of the batch: `more` is what the same table got
 * elsewhere (a tied classifier), and dwte may take over its memory. Tokens are in [0, V): the loader checks.
 * wte and wpe are read in whatever type they are kept. */
#ifndef DPT_OPS_EMBED_H
#define DPT_OPS_EMBED_H

#include "trainer/graph/graph.h"

struct embed_grad_attr {
	int64_t vocab, positions;
};

struct tensor *embed_add(struct graph *g, struct tensor *tokens, struct tensor *wte, struct tensor *wpe);

#endif
