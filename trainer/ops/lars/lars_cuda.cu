/* SPDX-License-Identifier: Apache-2.0 */
/* lars_cuda.cu: one LARS step, elementwise. Each thread computes the trust ratio once. */
#include "trainer/backends/cuda/cuda_update.h"

extern "C" {
#include "trainer/ops/lars/lars.h"
}

inline namespace lars_kernels {

template <typename T> struct lars_rule {
	static constexpr int moments = 1;
	struct lars_attr attr;
	bool keeps; /* uses momentum */
	const double *psum, *gsum;
	T rate = 0;

	static lars_rule of(const struct node *n, const struct kernel_args *a)
	{
		return { *static_cast<const struct lars_attr *>(n->attr), a->out[1] != nullptr, cuda_in<double>(a, 4),
			 cuda_in<double>(a, 5) };
	}

	__device__ void begin(const step_page *page, const double *step)
	{
		rate = (T)(page->lr * lars_ratio(&attr, psum, gsum, step[STEP_GUARD_FACTOR]));
	}

	__device__ void one(T d, T &w, T (&v)[1]) const
	{
		d = rate * (d + (T)attr.weight_decay * w);
		if (keeps)
			d = v[0] = (T)attr.momentum * v[0] + d;
		w -= d;
	}
};

} // namespace lars_kernels

CUDA_KERNEL(lars, cuda_prepare, run_update<lars_rule>);
