/* stage.h: copies rows to and from a library's layout: pads them with zeros or truncates them, and converts the
 * type. */
#ifndef DPT_BACKENDS_CUDA_STAGE_H
#define DPT_BACKENDS_CUDA_STAGE_H

#include "trainer/backends/cuda/cuda.h"

template <typename T, typename D>
__global__ void stage_kernel(const T *from, D *to, int64_t count, int from_columns, int to_columns)
{
	const int64_t stride = (int64_t)gridDim.x * blockDim.x;

	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
		const int c = (int)(i % to_columns);

		to[i] = c < from_columns ? narrow<D>((acc_t<D>)widen(from[i / to_columns * from_columns + c])) :
					   narrow<D>(acc_t<D>(0));
	}
}

struct stage_shape {
	int64_t rows;
	int from_columns, to_columns;
};

template <typename T, typename D>
static inline void stage_rows(const struct kernel_args *a, const T *from, D *to, const struct stage_shape &s)
{
	const int64_t count = s.rows * s.to_columns;
	const unsigned blocks = cuda_blocks(count, BLOCK_THREADS);

	launch(a, dim3(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX), BLOCK_THREADS, stage_kernel<T, D>, from,
	       to, count, s.from_columns, s.to_columns);
}

#endif
