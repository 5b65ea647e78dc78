/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_cuda.cu: dropout. One block of random words serves four neighbouring elements. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/dropout/dropout.h"
}

inline namespace dropout_kernels {

template <typename T> struct dropout_apply {
	static constexpr int width = vector_width<T>;
	struct dropout_attr attr;
	const step_page *page;
	const T *x;
	T *y;

	template <int W> __device__ void at(int64_t i) const
	{
		const struct dropout_draw d = dropout_draw(&attr, page);
		uint64_t number = d.first + (uint64_t)i;
		acc_t<T> v[W];
		uint32_t word[4];

		load(v, x + i);
		rng_block(d.key, number / 4, word);
		for (int k = 0; k < W; k++, number++) {
			if (k && number % 4 == 0)
				rng_block(d.key, number / 4, word);
			v[k] = word[number % 4] >= d.threshold ? v[k] * (acc_t<T>)d.scale : 0;
		}
		store(y + i, v);
	}
};

void run_dropout_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct dropout_attr attr = *static_cast<const struct dropout_attr *>(n->attr);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, dropout_apply<T>{ attr, a->page, cuda_in<T>(a, 0), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace dropout_kernels

CUDA_KERNEL(dropout, cuda_prepare, run_dropout_cuda);
