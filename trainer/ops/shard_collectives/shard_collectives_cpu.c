/* shard_collectives_cpu.c: hands the flat tensor to the communicator, in the type that it has. */
#include "trainer/ops/shard_collectives/shard_collectives_host.h"

extern const struct kernel all_gather_cpu, reduce_scatter_cpu;
const struct kernel all_gather_cpu = SHARD_COLLECTIVES_KERNEL(all_gather_run);
const struct kernel reduce_scatter_cpu = SHARD_COLLECTIVES_KERNEL(reduce_scatter_run);
