/* allreduce.h: sum over the ranks of env->comm, the same bits on every rank. in t out t' (may be the same memory). With
 * one rank or no communicator: a copy, or nothing when in place. The kernel of host backends calls the communicator. */
#ifndef DPT_OPS_ALLREDUCE_H
#define DPT_OPS_ALLREDUCE_H

#include "trainer/graph/graph.h"

/* In place: appends a node whose output is t itself. stream: STREAM_COMM to overlap, STREAM_COMPUTE to wait. */
struct node *allreduce_add(struct graph *g, struct tensor *t, enum stream stream);

#endif
