/* relu_cuda.cu: relu and relu_grad in f32 and bf16, one thread an element in a grid-stride loop: bound by memory. */
extern "C" {
#include "trainer/graph/kernel.h"
}

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdlib.h>

namespace {

constexpr int block_threads = 256;
constexpr int grid_blocks_max = 132 * 16; /* 16 blocks on each multiprocessor of an H200 */

template <typename T> __global__ void relu_kernel(const T *x, T *y, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
		float v = (float)x[i];

		y[i] = v > 0.0f || v != v ? x[i] : T(0.0f);
	}
}

template <typename T> __global__ void relu_grad_kernel(const T *dy, const T *y, T *dx, int64_t n)
{
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
		dx[i] = (float)y[i] > 0.0f ? dy[i] : T(0.0f);
}

struct elementwise {
	int64_t n;
	enum dtype dtype;
};

int elementwise_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	enum dtype t = n->in[0]->dtype;

	if (t != DTYPE_F32 && t != DTYPE_BF16)
		return err_set(err, ERR_UNSUPPORTED, "cuda: %s in %s is not offered", n->name, dtype_name(t));
	elementwise *e = static_cast<elementwise *>(malloc(sizeof(*e)));
	if (!e)
		return err_set(err, ERR_NOMEM, "cuda: %s: out of memory", n->name);
	*e = { shape_count(&n->in[0]->shape), t };
	*ret_state = e;
	return 0;
}

int grid_blocks(int64_t n)
{
	int64_t blocks = (n + block_threads - 1) / block_threads;

	return (int)(blocks < grid_blocks_max ? blocks : grid_blocks_max);
}

int launched(struct err *err, const char *op)
{
	cudaError_t rc = cudaGetLastError();

	return rc == cudaSuccess ? 0 : err_set(err, ERR_IO, "cuda: %s: %s", op, cudaGetErrorString(rc));
}

template <typename T> void relu_launch(const elementwise *e, const struct kernel_args *a)
{
	relu_kernel<<<grid_blocks(e->n), block_threads, 0, (cudaStream_t)a->stream>>>(
		static_cast<const T *>(a->in[0]), static_cast<T *>(a->out[0]), e->n);
}

template <typename T> void relu_grad_launch(const elementwise *e, const struct kernel_args *a)
{
	relu_grad_kernel<<<grid_blocks(e->n), block_threads, 0, (cudaStream_t)a->stream>>>(
		static_cast<const T *>(a->in[0]), static_cast<const T *>(a->in[1]), static_cast<T *>(a->out[0]), e->n);
}

int relu_run(void *state, const struct kernel_args *a, struct err *err)
{
	const elementwise *e = static_cast<elementwise *>(state);

	if (!e->n)
		return 0;
	if (e->dtype == DTYPE_F32)
		relu_launch<float>(e, a);
	else
		relu_launch<__nv_bfloat16>(e, a);
	return launched(err, "relu");
}

int relu_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const elementwise *e = static_cast<elementwise *>(state);

	if (!e->n)
		return 0;
	if (e->dtype == DTYPE_F32)
		relu_grad_launch<float>(e, a);
	else
		relu_grad_launch<__nv_bfloat16>(e, a);
	return launched(err, "relu_grad");
}

} // namespace

extern "C" const struct kernel relu_cuda = {
	.pack_bytes = nullptr,
	.prepare = elementwise_prepare,
	.run = relu_run,
	.release = free,
	.impl = nullptr,
};

extern "C" const struct kernel relu_grad_cuda = {
	.pack_bytes = nullptr,
	.prepare = elementwise_prepare,
	.run = relu_grad_run,
	.release = free,
	.impl = nullptr,
};
