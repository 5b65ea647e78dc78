/* SPDX-License-Identifier: Apache-2.0 */
/* add_cuda.cu: the elementwise sum. */
#include "trainer/backends/cuda/cuda.h"

inline namespace add_kernels {

template <typename T> struct sum {
	static constexpr int width = vector_width<T>;
	const T *a, *b;
	T *y;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> u[W], v[W];

		load(u, a + i);
		load(v, b + i);
		for (int k = 0; k < W; k++)
			u[k] += v[k];
		store(y + i, u);
	}
};

void run_add_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, sum<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace add_kernels

CUDA_KERNEL(add, cuda_prepare, run_add_cuda);
