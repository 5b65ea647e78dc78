/* sendrecv_cpu.c: passes the tensor to the communicator. */
#include "trainer/ops/sendrecv/sendrecv_host.h"

extern const struct kernel send_cpu, recv_cpu;
const struct kernel send_cpu = SENDRECV_KERNEL(run_send_host);
const struct kernel recv_cpu = SENDRECV_KERNEL(run_recv_host);
