/* sgd_cuda.cu: one SGD step, elementwise. */
#include "trainer/backends/cuda/descend.h"

extern "C" {
#include "trainer/ops/sgd/sgd.h"
}

namespace {

template <typename T> struct sgd_rule {
	static constexpr int moments = 1;
	struct sgd_attr attr;
	bool keeps; /* uses momentum */
	T lr = 0;

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

template <typename T> struct sgd_rule<T> make_sgd_rule(const struct node *n, const struct kernel_args *a)
{
	return { *static_cast<const struct sgd_attr *>(n->attr), a->out[1] != nullptr };
}

int run_sgd_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_MASTER(n->in[0]->dtype, T, return descend_run<T>(n, a, make_sgd_rule<T>(n, a), 3, err));
}

int run_sgd_many_cuda(void *const *states, const struct kernel_args *args, int n, struct err *err)
{
	BY_MASTER(cuda_node(states[0])->in[0]->dtype, T,
		  return many_each<descend<T, sgd_rule<T>>>(
			  states, args, n,
			  [](const struct node *node, const struct kernel_args *a) {
				  return descend_of<T>(a, make_sgd_rule<T>(node, a), 3);
			  },
			  err));
}

} // namespace

CUDA_KERNEL_MANY(sgd, cuda_prepare, run_sgd_cuda, run_sgd_many_cuda);
