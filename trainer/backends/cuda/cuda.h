/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h: host-side helpers of every cuda kernel: dispatch on types, shapes of launches, error handling. The state of a
 * kernel is its node, which outlives it, except for kernels with a plan. */
#ifndef DPT_BACKENDS_CUDA_CUDA_H
#define DPT_BACKENDS_CUDA_CUDA_H

#include "trainer/backends/cuda/device.h"

extern "C" {
#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/device_calls.h"
}

#define CUDA_KERNEL_OF(op, prepare_function, run_function, release_function, impl_function)                            \
	extern "C" const struct kernel op##_cuda = { .pack_bytes = nullptr,                                            \
						     .prepare = (prepare_function),                                    \
						     .run = (run_function),                                            \
						     .communicate = nullptr,                                           \
						     .run_many = nullptr,                                              \
						     .release = (release_function),                                    \
						     .impl = (impl_function) }
#define CUDA_KERNEL_MANY(op, prepare_function, run_function, many_function)                                            \
	extern "C" const struct kernel op##_cuda = { .pack_bytes = nullptr,                                            \
						     .prepare = (prepare_function),                                    \
						     .run = (run_function),                                            \
						     .communicate = nullptr,                                           \
						     .run_many = (many_function),                                      \
						     .release = nullptr,                                               \
						     .impl = nullptr }
#define CUDA_KERNEL(op, prepare_function, run_function)                                                                \
	CUDA_KERNEL_OF(op, prepare_function, run_function, nullptr, nullptr)

/* Runs the statements with T as the C++ type of a float dtype. */
#define BY_TYPE(dtype, T, ...)                                                                                         \
	switch (dtype) {                                                                                               \
	case DTYPE_F64: {                                                                                              \
		using T = double;                                                                                      \
		__VA_ARGS__;                                                                                           \
		break;                                                                                                 \
	}                                                                                                              \
	case DTYPE_F32: {                                                                                              \
		using T = float;                                                                                       \
		__VA_ARGS__;                                                                                           \
		break;                                                                                                 \
	}                                                                                                              \
	case DTYPE_BF16: {                                                                                             \
		using T = bf16;                                                                                        \
		__VA_ARGS__;                                                                                           \
		break;                                                                                                 \
	}                                                                                                              \
	default: {                                                                                                     \
		using T = f16;                                                                                         \
		__VA_ARGS__;                                                                                           \
	}                                                                                                              \
	}

/* The same for the master type: f64 or f32. */
#define BY_MASTER(dtype, T, ...)                                                                                       \
	if ((dtype) == DTYPE_F64) {                                                                                    \
		using T = double;                                                                                      \
		__VA_ARGS__;                                                                                           \
	} else {                                                                                                       \
		using T = float;                                                                                       \
		__VA_ARGS__;                                                                                           \
	}

#define BLOCK_THREADS 256
#define GRID_BLOCKS_MAX 2048 /* for loops over elements: 16 blocks per multiprocessor of the largest GPUs */

/* prepare of kernels without choices and workspace. */
static inline int cuda_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	*ret_state = n;
	return 0;
}

static inline const struct node *cuda_node(void *state)
{
	return static_cast<const struct node *>(state);
}

static inline int64_t cuda_count(const struct tensor *t)
{
	return shape_count(&t->shape);
}

template <typename T> static inline const T *cuda_in(const struct kernel_args *a, int k)
{
	return static_cast<const T *>(a->in[k]);
}

template <typename T> static inline T *cuda_out(const struct kernel_args *a, int k)
{
	return static_cast<T *>(a->out[k]);
}

/* Returns true if every operand is aligned to 16 bytes. The planner aligns tensors, but views need not be. */
static inline bool cuda_aligned(const struct node *n, const struct kernel_args *a)
{
	uintptr_t all = 0;

	for (int k = 0; k < n->n_in; k++)
		all |= (uintptr_t)a->in[k];
	for (int k = 0; k < n->n_out; k++)
		all |= (uintptr_t)a->out[k];
	return all % 16 == 0;
}

static inline unsigned cuda_blocks(int64_t items, int64_t each)
{
	return (unsigned)((items + each - 1) / each);
}

/* ---- loops over elements ---- */

/* Processes a block's share of n elements: f.at<W>(i) handles elements i to i + W; i is a multiple of W. f.begin(), if
 * defined, runs first, once per thread. */
template <int W, class F> __device__ inline void process_block(F &f, int64_t n, unsigned block, unsigned blocks)
{
	const int64_t stride = (int64_t)blocks * blockDim.x * W;

	if constexpr (requires { f.begin(); })
		f.begin();
	for (int64_t i = ((int64_t)block * blockDim.x + threadIdx.x) * W; i < n; i += stride) {
		if (inside(i + W <= n)) {
			f.template at<W>(i);
			continue;
		}
		for (int64_t k = i; k < n; k++)
			f.template at<1>(k);
	}
}

template <int W, class F> __global__ void each_kernel(F f, int64_t n)
{
	process_block<W>(f, n, blockIdx.x, gridDim.x);
}

/* Elements of a loop, and the length of their rows (0: no rows): a vector never crosses the end of a row. */
struct each_range {
	int64_t n, row;
};

/* Runs f over all elements, F::width at a time where alignment and row length allow. */
template <class F>
static inline void cuda_each(const struct node *node, const struct kernel_args *a, const F &f,
			     const struct each_range &range)
{
	const int64_t n = range.n;
	const bool wide = cuda_aligned(node, a) && range.row % F::width == 0;
	const unsigned blocks = cuda_blocks(n, (int64_t)BLOCK_THREADS * (wide ? F::width : 1));
	const dim3 grid(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX);

	if (!n)
		return;
	if (wide)
		launch(a, grid, BLOCK_THREADS, each_kernel<F::width, F>, f, n);
	else
		launch(a, grid, BLOCK_THREADS, each_kernel<1, F>, f, n);
}

#endif
