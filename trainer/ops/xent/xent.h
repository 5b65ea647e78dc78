/* xent.h: softmax cross-entropy with label smoothing s: target = (1-s) onehot + s/K (as PyTorch's CrossEntropyLoss).
 *   xent       in logits [N,K] master, labels i32 [N]          out result f64 [4], lse master [N], losses f64 [N]
 *                                                              (optional)
 *   xent_grad  in logits, labels, lse                          out dlogits = (softmax - target) * page.inv_count *
 *                                                              page.loss_scale
 * result, of this rank: sum of losses, samples whose label has the largest logit (top-1), samples whose label is among
 * the five largest (top-5; all for K < 5), number of samples. A logit equal to the label's ranks above it only if its
 * index is lower. A NaN logit is never correct, whatever K: another one ranks above the label's, the label's own is no
 * hit (xent_hits).
 * lse = log(sum(exp(logits))), computed relative to the row's maximum. The loader ensures that labels are in [0, K). A
 * row with a negative label is ignored: it is not in the result, and its loss and gradient are 0. */
#ifndef DPT_OPS_XENT_H
#define DPT_OPS_XENT_H

#include "trainer/graph/host_device.h"
#include "trainer/graph/graph.h"

enum { XENT_OUT_RESULT, XENT_OUT_LSE, XENT_OUT_LOSSES, XENT_OUTPUTS };

enum xent_result { XENT_LOSS_SUM, XENT_TOP1, XENT_TOP5, XENT_COUNT, XENT_RESULTS };

struct xent_attr {
	double label_smoothing;
};

/* Returns true if another logit ranks above the label's. Written so that a NaN on either side does. */
HOST_DEVICE_INLINE bool xent_before(double other, double label, bool lower_index)
{
	return !(other <= label) || (other == label && lower_index);
}

/* Returns true if the label is among the `most` largest logits. before: number of logits that rank above it. */
HOST_DEVICE_INLINE bool xent_hits(double label, int64_t before, int most)
{
	return label == label && before < most;
}

/* Adds the loss, makes its result (named "result") the graph's loss and returns it. */
struct tensor *xent_add(struct graph *g, struct tensor *logits, struct tensor *labels, double label_smoothing);

#endif
