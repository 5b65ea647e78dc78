/* allreduce.h: sum over the ranks of env->comm, with the same bits on every rank. in t out t' (may be the same memory).
 * With one rank or no communicator it copies, or does nothing when in place. Kernels of host backends call the
 * communicator. With attributes (struct partial_sums_attr, ../terms/terms.h) t holds partial sums, in place: the first
 * slot receives the sum over all ranks along the summation tree (graph/leaves.h), if the communicator supports it; else
 * the sum of the ranks' own sums. */
#ifndef DPT_OPS_ALLREDUCE_H
#define DPT_OPS_ALLREDUCE_H

#include "trainer/graph/graph.h"

/* Appends an in-place node, whose output is t itself. stream: STREAM_COMM to overlap, STREAM_COMPUTE to wait. */
struct node *allreduce_add(struct graph *g, struct tensor *t, enum stream stream);

/* The same for partial sums; room: terms each rank has space for. */
struct node *allreduce_terms_add(struct graph *g, struct tensor *terms, int room, enum stream stream);

#endif
