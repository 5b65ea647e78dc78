/* SPDX-License-Identifier: Apache-2.0 */
/* adamw_cuda.cu: one AdamW step, elementwise. Each thread computes the bias corrections once. */
#include "trainer/backends/cuda/cuda_update.h"

extern "C" {
#include "trainer/ops/adamw/adamw.h"
}

inline namespace adamw_kernels {

template <typename T> struct adamw_rule {
	static constexpr int moments = 2;
	struct adamw_attr attr;
	T lr = 0, rate = 0, root = 0; /* rate: lr / (1 - b1^t); root: sqrt(1 - b2^t) */

	static adamw_rule of(const struct node *n, const struct kernel_args *)
	{
		return { *static_cast<const struct adamw_attr *>(n->attr) };
	}

	__device__ void begin(const step_page *page, const double *step)
	{
		lr = (T)page->lr;
		rate = (T)(page->lr / (1 - pow(attr.beta1, step[STEP_GUARD_UPDATES])));
		root = (T)sqrt(1 - pow(attr.beta2, step[STEP_GUARD_UPDATES]));
	}

	__device__ void one(T d, T &w, T (&v)[2]) const
	{
		const T decay = (T)attr.weight_decay, rest1 = (T)(1 - attr.beta1);
		const T keep2 = (T)attr.beta2, rest2 = (T)(1 - attr.beta2);

		if (attr.coupled)
			d += decay * w;
		else
			w -= lr * decay * w;
		v[0] += rest1 * (d - v[0]);
		v[1] = keep2 * v[1] + rest2 * d * d;
		w -= rate * v[0] / (sqrt(v[1]) / root + (T)attr.eps);
	}
};

} // namespace adamw_kernels

CUDA_KERNEL_MANY(adamw, cuda_prepare, run_update<adamw_rule>, run_update_many<adamw_rule>);
