/* adamw_cuda.cu: one AdamW step, elementwise. Each thread computes the bias corrections once. */
#include "trainer/backends/cuda/descend.h"

extern "C" {
#include "trainer/ops/adamw/adamw.h"
}

namespace {

template <typename T> struct adamw_rule {
	static constexpr int moments = 2;
	struct adamw_attr attr;
	T lr = 0, rate = 0, root = 0; /* rate: lr / (1 - b1^t); root: sqrt(1 - b2^t) */

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

template <typename T> struct adamw_rule<T> make_adamw_rule(const struct node *n)
{
	return { *static_cast<const struct adamw_attr *>(n->attr) };
}

int run_adamw_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_MASTER(n->in[0]->dtype, T, return descend_run<T>(n, a, make_adamw_rule<T>(n), 4, err));
}

int run_adamw_many_cuda(void *const *states, const struct kernel_args *args, int n, struct err *err)
{
	BY_MASTER(cuda_node(states[0])->in[0]->dtype, T,
		  return many_each<descend<T, adamw_rule<T>>>(
			  states, args, n,
			  [](const struct node *node, const struct kernel_args *a) {
				  return descend_of<T>(a, make_adamw_rule<T>(node), 4);
			  },
			  err));
}

} // namespace

CUDA_KERNEL_MANY(adamw, cuda_prepare, run_adamw_cuda, run_adamw_many_cuda);
