/* shard_collectives_ref.c: hands the flat tensor to the communicator. */
#include "trainer/ops/shard_collectives/shard_collectives_host.h"

extern const struct kernel all_gather_ref, reduce_scatter_ref;
const struct kernel all_gather_ref = SHARD_COLLECTIVES_KERNEL(all_gather_run);
const struct kernel reduce_scatter_ref = SHARD_COLLECTIVES_KERNEL(reduce_scatter_run);
