/* SPDX-License-Identifier: Apache-2.0 */
/* relu_cuda.cu: ReLU and its gradient, elementwise; NaN stays NaN. */
#include "trainer/backends/cuda/cuda.h"

inline namespace relu_kernels {

template <typename T> struct rectify {
	static constexpr int width = vector_width<T>;
	const T *x;
	T *y;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> v[W];

		load(v, x + i);
		for (int k = 0; k < W; k++)
			v[k] = v[k] <= 0 ? 0 : v[k];
		store(y + i, v);
	}
};

template <typename T> struct rectify_grad {
	static constexpr int width = vector_width<T>;
	const T *dy, *y;
	T *dx;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> d[W], v[W];

		load(d, dy + i);
		load(v, y + i);
		for (int k = 0; k < W; k++)
			d[k] = v[k] > 0 ? d[k] : 0;
		store(dx + i, d);
	}
};

void run_relu_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, rectify<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0) }, { cuda_count(n->in[0]), 0 }));
}

void run_relu_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, rectify_grad<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace relu_kernels

CUDA_KERNEL(relu, cuda_prepare, run_relu_cuda);
CUDA_KERNEL(relu_grad, cuda_prepare, run_relu_grad_cuda);
