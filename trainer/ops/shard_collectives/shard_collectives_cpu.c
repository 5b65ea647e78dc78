/* shard_collectives_cpu.c: passes the flat tensor to the communicator in its own type. */
#include "trainer/ops/shard_collectives/shard_collectives_host.h"

extern const struct kernel all_gather_cpu, reduce_scatter_cpu;
const struct kernel all_gather_cpu = SHARD_COLLECTIVES_KERNEL(run_all_gather_host);
const struct kernel reduce_scatter_cpu = SHARD_COLLECTIVES_KERNEL(run_reduce_scatter_host);
