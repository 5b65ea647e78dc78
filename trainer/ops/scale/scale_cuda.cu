/* SPDX-License-Identifier: Apache-2.0 */
/* scale_cuda.cu: the product with a constant. */
#include "trainer/backends/cuda/cuda.h"
#include "trainer/ops/scale/scale.h"

inline namespace scale_kernels {

template <typename T> struct scaled {
	static constexpr int width = vector_width<T>;
	const T *x;
	T *y;
	acc_t<T> factor;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> v[W];

		load(v, x + i);
		for (int k = 0; k < W; k++)
			v[k] *= factor;
		store(y + i, v);
	}
};

void run_scale_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const double factor = ((const struct scale_attr *)n->attr)->factor;

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, scaled<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0), (acc_t<T>)factor },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace scale_kernels

CUDA_KERNEL(scale, cuda_prepare, run_scale_cuda);
