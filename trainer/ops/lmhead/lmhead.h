/* lmhead.h: a language model's classifier and its loss in one: logits = x w^T, softmax cross-entropy with the target.
 *   lmhead  in x [R,C], w [V,C], targets i32 (R of them; below 0: ignored)
 *           out result f64 [4], dx [R,C] (optional), dw [V,C] (optional, master type), logits [R,V] (optional, master),
 *               losses f64 [R] (optional): of each row, 0 where its target is ignored
 * result: as xent's, without ranks: sum of losses, 0, 0, targets that count, of this rank. dx and dw are the gradients
 * of the losses times page.inv_count and page.loss_scale. Logits and probabilities exist for a block of rows at a time.
 * The gradients need each block's probabilities as the loss does, so training computes all three in one visit: the node
 * that gives the loss gives the gradients, in the backward phase, and no product is computed twice. */
#ifndef DPT_OPS_LMHEAD_H
#define DPT_OPS_LMHEAD_H

#include "trainer/graph/graph.h"

enum { LMHEAD_RESULT, LMHEAD_DX, LMHEAD_DW, LMHEAD_LOGITS, LMHEAD_LOSSES, LMHEAD_OUTPUTS };

/* Returns the result (named "result") and makes it the graph's loss. w may be the embedding's table. keep_logits: they
 * are kept for the host, under the name "logits". */
struct tensor *lmhead_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *targets,
			  bool keep_logits);

#endif
