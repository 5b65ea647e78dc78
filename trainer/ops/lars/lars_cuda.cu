/* lars_cuda.cu: one LARS step, elementwise. Each thread computes the trust ratio once. */
#include "trainer/backends/cuda/descend.h"

extern "C" {
#include "trainer/ops/lars/lars_math.h"
}

namespace {

template <typename T> struct lars_rule {
	static constexpr int moments = 1;
	struct lars_attr attr;
	bool keeps; /* uses momentum */
	const double *psum, *gsum;
	T rate = 0;

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

int run_lars_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct lars_attr attr = *static_cast<const struct lars_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  return descend_run<T>(n, a,
					lars_rule<T>{ attr, a->out[1] != nullptr, cuda_in<double>(a, 4),
						     cuda_in<double>(a, 5) },
					3, err));
}

} // namespace

CUDA_KERNEL(lars, cuda_prepare, run_lars_cuda);
