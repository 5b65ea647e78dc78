/* SPDX-License-Identifier: Apache-2.0 */
/* pack_cuda.cu: all kernels use plain layouts, so there is no pack kernel. */
#include "trainer/backends/cuda/cuda.h"

CUDA_KERNEL(pack, cuda_prepare, nullptr);
