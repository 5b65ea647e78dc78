/* pack_cuda.cu: kernels take every tensor in its plain layout, so no pack is offered. */
#include "trainer/backends/cuda/cuda.h"

CUDA_KERNEL(pack, cuda_prepare, nullptr);
