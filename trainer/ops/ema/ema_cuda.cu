/* SPDX-License-Identifier: Apache-2.0 */
/* ema_cuda.cu: one update of an average, elementwise. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/ema/ema.h"
}

inline namespace ema_kernels {

template <typename T> struct average {
	static constexpr int width = vector_width<T>;
	struct ema_attr attr;
	const double *step;
	const step_page *page;
	const T *x;
	T *ema;

	template <int W> __device__ void at(int64_t i) const
	{
		const double keep = ema_keep(&attr, step, page->epoch_step);
		T v[W], so_far[W];

		if (keep >= 1)
			return;
		load(v, x + i);
		if (keep > 0) {
			load(so_far, ema + i);
			for (int k = 0; k < W; k++)
				v[k] = (T)keep * so_far[k] + (T)(1 - keep) * v[k];
		}
		store(ema + i, v);
	}
};

void run_ema_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct ema_attr attr = *static_cast<const struct ema_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  cuda_each(n, a,
			    average<T>{ attr, cuda_in<double>(a, 2), a->page, cuda_in<T>(a, 0), cuda_out<T>(a, 0) },
			    { cuda_count(n->in[0]), 0 }));
}

} // namespace ema_kernels

CUDA_KERNEL(ema, cuda_prepare, run_ema_cuda);
