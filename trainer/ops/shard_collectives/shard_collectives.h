/* shard_collectives.h: flat tensors of which each rank of env->comm owns a range: count / ranks elements, in rank order.
 *   all_gather      in t out t (in place): every rank's own range to all of them
 *   reduce_scatter  in t out t (in place): a rank's own range becomes the sum over the ranks, in rank order; what the
 *                   others own is then of no meaning; of terms (attributes) as allreduce does it
 * t: any type (all_gather), a type that communicators sum (reduce_scatter), a multiple of the ranks long. With one rank
 * or no communicator nothing happens. The kernels of host backends call the communicator. */
#ifndef DPT_OPS_SHARD_COLLECTIVES_H
#define DPT_OPS_SHARD_COLLECTIVES_H

#include "trainer/graph/graph.h"
#include "trainer/ops/partial_sums/partial_sums.h"

struct shard_collectives_attr {
	struct partial_sums_attr terms; /* reduce_scatter: room 0: a plain sum */
};

/* Append a node among the ranks that share one copy, on the stream of gathers or of reductions. NULL once the graph
 * failed. */
struct node *all_gather_add(struct graph *g, struct tensor *t, bool once); /* once: node->once */
struct node *reduce_scatter_add(struct graph *g, struct tensor *t, int room); /* room: of terms; 0: a plain sum */

#endif
