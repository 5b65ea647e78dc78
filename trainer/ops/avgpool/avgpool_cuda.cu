/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool_cuda.cu: the average over all pixels of each image and channel. One thread per channel (or vector of
 * channels) loops over the image. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
}

inline namespace avgpool_kernels {

template <typename T> struct pool_average {
	static constexpr int width = vector_width<T>;
	const T *x;
	T *y;
	int64_t channels, pixels;

	template <int W> __device__ void at(int64_t i) const
	{
		const T *from = x + i / channels * pixels * channels + i % channels;
		acc_t<T> sum[W] = {}, v[W];

		for (int64_t p = 0; p < pixels; p++) {
			load(v, from + p * channels);
			for (int k = 0; k < W; k++)
				sum[k] += v[k];
		}
		for (int k = 0; k < W; k++)
			sum[k] /= (acc_t<T>)pixels;
		store(y + i, sum);
	}
};

template <typename T> struct spread_average {
	static constexpr int width = vector_width<T>;
	const T *dy;
	T *dx;
	int64_t channels, pixels;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> d[W];

		load(d, dy + i / channels / pixels * channels + i % channels);
		for (int k = 0; k < W; k++)
			d[k] /= (acc_t<T>)pixels;
		store(dx + i, d);
	}
};

void run_avgpool_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t *in = n->in[0]->shape.dim;

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, pool_average<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0), in[3], in[1] * in[2] },
			  { cuda_count(n->out[0]), in[3] }));
}

void run_avgpool_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t *in = n->out[0]->shape.dim;

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, spread_average<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0), in[3], in[1] * in[2] },
			  { cuda_count(n->out[0]), in[3] }));
}

} // namespace avgpool_kernels

CUDA_KERNEL(avgpool, cuda_prepare, run_avgpool_cuda);
CUDA_KERNEL(avgpool_grad, cuda_prepare, run_avgpool_grad_cuda);
