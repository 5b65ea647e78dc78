/* SPDX-License-Identifier: Apache-2.0 */
/* xent.h: softmax cross-entropy with label smoothing s: target = (1-s) onehot + s/K (as PyTorch's CrossEntropyLoss).
 *   xent       in logits [N,K] master, labels i32 [N]          out result f64 [4], lse master [N], losses f64 [N]
 *              (optional)
 *   xent_grad  in logits, labels, lse                          out dlogits = (softmax - target) * page.inv_count *
 *              page.loss_scale
 * With labels i32 [N,2] (mixed pictures) a row's target has page.label_weight on the first label and the rest on the
 * second one, in place of onehot; accuracy is that of the label with the larger weight (with equal ones the lower
 * label, as the argmax of a target). result, of this rank: sum of losses, samples whose label has the largest logit
 * (top-1), samples whose label is among the five largest (top-5; all for K < 5), number of samples. A logit equal to
 * the label's ranks above it only if its index is lower. A NaN logit is never correct, whatever K: another one ranks
 * above the label's, the label's own is no hit (xent_hits). lse = log(sum(exp(logits))), computed relative to the row's
 * maximum. The loader ensures that labels are in [0, K). A row with a negative label is ignored: it is not in the
 * result, and its loss and gradient are 0. */
#ifndef DPT_OPS_XENT_H
#define DPT_OPS_XENT_H

#include "trainer/graph/host_device.h"
#include "trainer/graph/graph.h"

enum { XENT_OUT_RESULT, XENT_OUT_LSE, XENT_OUT_LOSSES, XENT_OUTPUTS };

enum xent_result { XENT_LOSS_SUM, XENT_TOP1, XENT_TOP5, XENT_COUNT, XENT_RESULTS };

struct xent_attr {
	double label_smoothing;
};

/* The labels of a row; weight: of the first one. A single label is both. */
struct xent_labels {
	int32_t first, second;
	double weight;
};

/* per_row: 1 or 2 labels. */
HOST_DEVICE_INLINE struct xent_labels xent_labels_of(const int32_t *labels, int64_t row, int per_row, double weight)
{
	const int32_t *at = labels + row * per_row;
	struct xent_labels l = { at[0], at[per_row - 1], per_row == 2 ? weight : 1 };

	return l;
}

/* The label that accuracy counts. */
HOST_DEVICE_INLINE int32_t xent_main_label(struct xent_labels l)
{
	if (l.weight == 0.5)
		return l.first < l.second ? l.first : l.second;
	return l.weight > 0.5 ? l.first : l.second;
}

/* The weighted mean of the labels' logits; a logit of weight 0 does not count, even if it is not finite. */
HOST_DEVICE_INLINE double xent_label_logit(double first, double second, double weight)
{
	return weight == 1 ? first : weight == 0 ? second : weight * first + (1 - weight) * second;
}

/* The share of the target that is not smoothed, at a class. */
HOST_DEVICE_INLINE double xent_share(struct xent_labels l, int64_t class_index)
{
	return (class_index == l.first ? l.weight : 0) + (class_index == l.second ? 1 - l.weight : 0);
}

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
