/* shares_cuda.cu: one rank owns the whole of every flat tensor. */
#include "trainer/backends/cuda/alone.h"

CUDA_KERNEL(all_gather, alone_prepare, alone_run);
CUDA_KERNEL(reduce_scatter, alone_prepare, alone_run);
