/* allreduce_cpu.c: hands a tensor to the communicator, in the type that it has. */
#include "trainer/ops/allreduce/allreduce_host.h"

extern const struct kernel allreduce_cpu;
const struct kernel allreduce_cpu = ALLREDUCE_KERNEL;
