/* peer_cuda.cu: there is no other rank to send to. */
#include "trainer/backends/cuda/alone.h"

CUDA_KERNEL(send, alone_prepare, alone_run);
CUDA_KERNEL(recv, alone_prepare, alone_run);
