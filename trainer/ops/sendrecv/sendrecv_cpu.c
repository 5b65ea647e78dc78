/* sendrecv_cpu.c: hands the tensor to the communicator. */
#include "trainer/ops/sendrecv/sendrecv_host.h"

extern const struct kernel send_cpu, recv_cpu;
const struct kernel send_cpu = SENDRECV_KERNEL(send_run);
const struct kernel recv_cpu = SENDRECV_KERNEL(recv_run);
