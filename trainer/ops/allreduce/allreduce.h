/* allreduce.h: sum over the ranks of env->comm, the same bits on every rank. in t out t' (may be the same memory). With
 * one rank or no communicator: a copy, or nothing when in place. The kernel of host backends calls the communicator.
 * With attributes (struct partial_sums_attr, ../terms/terms.h) t holds terms, in place: the first one's place gets the sum of
 * all ranks' along the tree of leaves, where the communicator offers that; else the sum of the ranks' own sums. */
#ifndef DPT_OPS_ALLREDUCE_H
#define DPT_OPS_ALLREDUCE_H

#include "trainer/graph/graph.h"

/* In place: appends a node whose output is t itself. stream: STREAM_COMM to overlap, STREAM_COMPUTE to wait. */
struct node *allreduce_add(struct graph *g, struct tensor *t, enum stream stream);

/* The same of terms. */
struct node *allreduce_terms_add(struct graph *g, struct tensor *terms, int room, enum stream stream);

#endif
