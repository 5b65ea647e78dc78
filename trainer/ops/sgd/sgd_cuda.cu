/* SPDX-License-Identifier: Apache-2.0 */
/* sgd_cuda.cu: one SGD step, elementwise. */
#include "trainer/backends/cuda/cuda_update.h"

extern "C" {
#include "trainer/ops/sgd/sgd.h"
}

inline namespace sgd_kernels {

template <typename T> struct sgd_rule {
	static constexpr int moments = 1;
	struct sgd_attr attr;
	bool keeps; /* uses momentum */
	T lr = 0;

	static sgd_rule of(const struct node *n, const struct kernel_args *a)
	{
		return { *static_cast<const struct sgd_attr *>(n->attr), a->out[1] != nullptr };
	}

	__device__ void begin(const step_page *page, const double *)
	{
		lr = (T)page->lr;
	}

	__device__ void one(T d, T &w, T (&v)[1]) const
	{
		const T momentum = (T)attr.momentum;

		d += (T)attr.weight_decay * w;
		if (keeps) {
			v[0] = momentum * v[0] + d;
			d = attr.nesterov ? d + momentum * v[0] : v[0];
		}
		w -= lr * d;
	}
};

} // namespace sgd_kernels

CUDA_KERNEL_MANY(sgd, cuda_prepare, run_update<sgd_rule>, run_update_many<sgd_rule>);
