/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.h: exchanges between the ranks of env->comm. With one rank or no communicator a sum copies, or does
 * nothing in place, and the others do nothing. Kernels of host backends call the communicator.
 *   allreduce       in t out t' (may be the same memory): the sum over the ranks, with the same bits on every rank
 *   all_gather      in t out t (in place): copies every rank's own range to all ranks
 *   reduce_scatter  in t out t (in place): a rank's own range becomes the sum over the ranks, in rank order; the other
 *                   ranges are then undefined
 *   send, recv      in t, no output; no input, out t: sends a tensor to another rank of the node's group. The n-th send
 *                   of a pair matches its n-th receive: tensors of one pair use one stream of the sender and one of the
 *                   receiver.
 * all_gather and reduce_scatter work on flat tensors of which each rank owns a range of count / ranks elements, in rank
 * order. Sums take a type that communicators sum, the others any type.
 *
 * Sums with room for partial sums (../partial_sums) work in place: the first slot, or the rank's range of it, receives
 * the sum over all ranks along the reduction tree (graph/reduction_tree.h), if the communicator supports it; else the
 * sum of the ranks' own sums. */
#ifndef DPT_OPS_COLLECTIVES_H
#define DPT_OPS_COLLECTIVES_H

#include "trainer/ops/partial_sums/partial_sums.h"

struct collective_attr {
	struct partial_sums_attr terms; /* sums: terms that each rank has space for; room 0: plain sum */
	int rank;			/* send, recv: destination or source, a rank in the group */
};

/* These append a node; NULL once the graph failed. stream: STREAM_COMM to overlap, STREAM_COMPUTE to wait. */

/* In place. room: of partial sums; 0: plain sum. */
struct node *allreduce_add(struct graph *g, struct tensor *t, int room, enum stream stream);

/* In GROUP_SHARD, on the stream of gathers or of reductions. once: see node->once. */
struct node *all_gather_add(struct graph *g, struct tensor *t, bool once);
struct node *reduce_scatter_add(struct graph *g, struct tensor *t, int room);

/* In GROUP_PIPELINE. */
struct node *send_add(struct graph *g, struct tensor *t, int to, enum stream stream);
struct node *recv_add(struct graph *g, struct tensor *t, int from, enum stream stream);

#endif
