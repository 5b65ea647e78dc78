/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead.h: the classifier of a language model fused with its loss: logits = x w^T, or cap tanh(that / cap), then
 * softmax cross-entropy with the targets.
 *   lmhead  in x [R,C], w [V,C], targets i32 (R of them; below 0: ignored)
 *           out result f64 [4], dx [R,C] (optional), dw [V,C] (optional, master type), logits [R,V] (optional, master),
 *               losses f64 [R] (optional): per row, 0 where the target is ignored; best i32 [R] (optional): the word
 *               of the row's largest logit, the first of several, 0 where the target is ignored
 * result is that of xent for this rank alone: sum of losses, 0, 0, number of targets that count. dx and dw are the
 * gradients of the losses times page.inv_count and page.loss_scale. Logits and probabilities exist for one block of
 * rows at a time. The gradients and the loss need the same probabilities. Training therefore computes all three in one
 * visit: the node that computes the loss runs in the backward phase and also writes the gradients, so that no product
 * is computed twice. */
#ifndef DPT_OPS_LMHEAD_H
#define DPT_OPS_LMHEAD_H

#include "trainer/graph/graph.h"

enum { LMHEAD_RESULT, LMHEAD_DX, LMHEAD_DW, LMHEAD_LOGITS, LMHEAD_LOSSES, LMHEAD_BEST, LMHEAD_OUTPUTS };

struct lmhead_attr {
	double cap; /* of logits; 0: none */
};

/* logits, best: the host reads them, as "logits" and "best". */
struct lmhead_opts {
	bool logits, best;
	struct lmhead_attr attr;
};

static inline double lmhead_cap(const struct node *n)
{
	return ((const struct lmhead_attr *)n->attr)->cap;
}

/* Adds the node, makes its result (named "result") the graph's loss and returns it. w may be the embedding table. */
struct tensor *lmhead_add(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *targets,
			  const struct lmhead_opts *o);

#endif
