/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums.h: a rank's partial sums along the reduction tree (graph/reduction_tree.h). One tensor has slots for the
 * most partial sums that a rank ever holds; the page gives the leaf of each micro-batch.
 *   term_push  in terms [room * n], x [n] out terms: stores the term of this micro-batch's leaf in its slot, added to
 *              the roots it completes; does nothing if the rank has no leaf in this micro-batch
 *   term_fold  in terms out terms: the first slot becomes the sum of all of the rank's partial sums
 * f32 or f64; terms and x have one type; in place. allreduce and reduce_scatter add the partial sums of all ranks. */
#ifndef DPT_OPS_PARTIAL_SUMS_H
#define DPT_OPS_PARTIAL_SUMS_H

#include "trainer/graph/graph.h"

struct partial_sums_attr {
	int room;
};

struct partial_sums_spec {
	int room;
	enum lifetime life; /* LIFE_ACROSS if a step has several micro-batches */
	enum space space;
};

/* Appends a node that stores x in a new tensor of partial sums of its kind and type, named "<x>.terms". NULL once the
 * graph failed. */
struct node *term_push_add(struct graph *g, struct tensor *x, const struct partial_sums_spec *s);

/* Appends the sum of a rank's own partial sums. */
struct node *term_fold_add(struct graph *g, struct tensor *terms, int room);

/* A view of the first slot, where sums are stored, with like's kind, shape and name. */
struct tensor *partial_sums_first(struct graph *g, struct tensor *terms, const struct tensor *like);

#endif
