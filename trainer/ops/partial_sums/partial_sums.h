/* partial_sums.h: a rank's terms of sums along the tree of leaves (graph/leaves.h). They lie behind one another in one tensor
 * with room for as many as a rank ever has; the page says which leaf a micro-batch is.
 *   term_push  in terms [room * n], x [n] out terms: the term of this micro-batch's leaf takes its place, with the
 *              roots added that it completes; nothing when the rank has no leaf in this micro-batch
 *   term_fold  in terms out terms: the first n become the sum of the rank's own
 * f32 or f64; terms and x of one type; in place. What adds the terms of all ranks are allreduce and reduce_scatter. */
#ifndef DPT_OPS_PARTIAL_SUMS_H
#define DPT_OPS_PARTIAL_SUMS_H

#include "trainer/graph/graph.h"

struct partial_sums_attr {
	int room;
};

struct partial_sums_spec {
	int room;
	enum lifetime life; /* LIFE_ACROSS where a step has several micro-batches */
	enum space space;
};

/* Appends the node that puts x into terms of its kind and type, which it makes, named "<x>.terms". NULL once the graph
 * failed. */
struct node *term_push_add(struct graph *g, struct tensor *x, const struct partial_sums_spec *s);

/* Appends the sum of a rank's own. */
struct node *term_fold_add(struct graph *g, struct tensor *terms, int room);

/* A view of the first term's place, where sums are left: like's kind, shape and name. */
struct tensor *partial_sums_first(struct graph *g, struct tensor *terms, const struct tensor *like);

#endif
