/* SPDX-License-Identifier: Apache-2.0 */
/* update.h: what the ops of optimisers share: the node that updates one parameter, its shape rule and aliasing. */
#ifndef DPT_OPS_UPDATE_H
#define DPT_OPS_UPDATE_H

#include "trainer/graph/op.h"

#define UPDATE_MOMENTS_MAX 2

/* The node that updates a parameter: in p, its gradient, moments, step, sums; out p and moments, the same tensors. */
struct update_spec {
	const struct op *op;
	int moments;
	struct tensor *moment[UPDATE_MOMENTS_MAX]; /* by op_moment; NULL: an absent operand */
	int sums;
	struct tensor *sum[2]; /* f64 [1]; NULL: an absent operand */
	const void *attr; /* copied, attr_bytes of it */
	size_t attr_bytes;
};

/* Appends the node; NULL once the graph failed. */
struct node *update_add(struct graph *g, struct tensor *p, struct tensor *step, const struct update_spec *s);

/* Shape rule and aliasing of these nodes, also for those whose output 0 is a new tensor in the memory of input 0:
 * inputs 0 and 1 and all moments have one shape; output i > 0 is input i + 1. */
int update_shape(struct graph *g, struct node *n);
int update_inplace(const struct node *n, int out);

#endif
