/* shard_collectives_ref.c: passes the flat tensor to the communicator. */
#include "trainer/ops/shard_collectives/shard_collectives_host.h"

extern const struct kernel all_gather_ref, reduce_scatter_ref;
const struct kernel all_gather_ref = SHARD_COLLECTIVES_KERNEL(run_all_gather_host);
const struct kernel reduce_scatter_ref = SHARD_COLLECTIVES_KERNEL(run_reduce_scatter_host);
