/* shard_collectives.h: collectives on flat tensors of which each rank of env->comm owns a range: count / ranks
 * elements, in rank order. all_gather      in t out t (in place): copies every rank's own range to all ranks
 *   reduce_scatter  in t out t (in place): a rank's own range becomes the sum over the ranks, in rank order; the other
 *                   ranges are then undefined; with attributes it sums partial sums, like allreduce
 * t: any type (all_gather), or a type that communicators sum (reduce_scatter); its length is a multiple of the ranks.
 * With one rank or no communicator nothing happens. Kernels of host backends call the communicator. */
#ifndef DPT_OPS_SHARD_COLLECTIVES_H
#define DPT_OPS_SHARD_COLLECTIVES_H

#include "trainer/graph/graph.h"
#include "trainer/ops/partial_sums/partial_sums.h"

struct shard_collectives_attr {
	struct partial_sums_attr terms; /* reduce_scatter: room 0: plain sum */
};

/* Append a node in GROUP_SHARD, on the stream of gathers or of reductions. NULL once the graph failed. */
struct node *all_gather_add(struct graph *g, struct tensor *t, bool once); /* once: see node->once */
struct node *reduce_scatter_add(struct graph *g, struct tensor *t, int room); /* room: of partial sums; 0: plain sum */

#endif
