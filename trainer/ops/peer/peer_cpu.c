/* peer_cpu.c: hands the tensor to the communicator. */
#include "trainer/ops/peer/peer_host.h"

extern const struct kernel send_cpu, recv_cpu;
const struct kernel send_cpu = PEER_KERNEL(send_run);
const struct kernel recv_cpu = PEER_KERNEL(recv_run);
