/* allreduce_cpu.c: passes a tensor to the communicator in its own type. */
#include "trainer/ops/allreduce/allreduce_host.h"

extern const struct kernel allreduce_cpu;
const struct kernel allreduce_cpu = ALLREDUCE_KERNEL;
