/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate_cuda.cu: the sum over micro-batches, elementwise. */
#include "trainer/backends/cuda/cuda.h"

inline namespace accumulate_kernels {

template <typename T> struct micro_sum {
	static constexpr int width = vector_width<T>;
	const step_page *page;
	const T *x;
	T *s;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> more[W], so_far[W];

		load(more, x + i);
		if (page->micro) {
			load(so_far, s + i);
			for (int k = 0; k < W; k++)
				more[k] += so_far[k];
		}
		store(s + i, more);
	}
};

void run_accumulate_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[1]->dtype, T,
		cuda_each(n, a, micro_sum<T>{ a->page, cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[1]), 0 }));
}

} // namespace accumulate_kernels

CUDA_KERNEL(accumulate, cuda_prepare, run_accumulate_cuda);
