/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_cuda.cu: tanh GELU and its gradient, elementwise. */
#include "trainer/backends/cuda/cuda.h"

inline namespace gelu_kernels {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

template <typename A> __device__ A compute_tanh_part(A x)
{
	return tanh(A(sqrt_2_over_pi) * (x + A(cubic) * x * x * x));
}

template <typename T> struct gelu_forward {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	const T *x;
	T *y;

	template <int W> __device__ void at(int64_t i) const
	{
		A v[W];

		load(v, x + i);
		for (int k = 0; k < W; k++)
			v[k] = A(0.5) * v[k] * (1 + compute_tanh_part(v[k]));
		store(y + i, v);
	}
};

template <typename T> struct gelu_backward {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	const T *dy, *x;
	T *dx;

	template <int W> __device__ void at(int64_t i) const
	{
		A d[W], v[W];

		load(d, dy + i);
		load(v, x + i);
		for (int k = 0; k < W; k++) {
			A t = compute_tanh_part(v[k]), inner = A(sqrt_2_over_pi) * (1 + A(3 * cubic) * v[k] * v[k]);

			d[k] *= A(0.5) * (1 + t) + A(0.5) * v[k] * (1 - t * t) * inner;
		}
		store(dx + i, d);
	}
};

void run_gelu_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, gelu_forward<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0) }, { cuda_count(n->in[0]), 0 }));
}

void run_gelu_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, gelu_backward<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace gelu_kernels

CUDA_KERNEL(gelu, cuda_prepare, run_gelu_cuda);
CUDA_KERNEL(gelu_grad, cuda_prepare, run_gelu_grad_cuda);
