/* sgd_cuda.cu: one SGD step, element by element. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/guard/guard.h"
#include "trainer/ops/sgd/sgd.h"
}

namespace {

template <typename T> struct descend {
	static constexpr int width = vector_width<T>;
	struct sgd_attr attr;
	const step_page *page;
	const double *step;
	const T *g;
	T *p, *m; /* m: NULL without momentum */

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = (T)step[GUARD_FACTOR], decay = (T)attr.weight_decay, lr = (T)page->lr;
		const T momentum = (T)attr.momentum;
		T d[W], w[W], v[W];

		if (step[GUARD_SKIP] != 0)
			return;
		load(d, g + i);
		load(w, p + i);
		if (m)
			load(v, m + i);
		for (int k = 0; k < W; k++) {
			d[k] = d[k] * factor + decay * w[k];
			if (m) {
				v[k] = momentum * v[k] + d[k];
				d[k] = attr.nesterov ? d[k] + momentum * v[k] : v[k];
			}
			w[k] -= lr * d[k];
		}
		if (m)
			store(m + i, v);
		store(p + i, w);
	}
};

int sgd_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sgd_attr attr = *static_cast<const struct sgd_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a,
				   descend<T>{ attr, a->page, cuda_in<double>(a, 3), cuda_in<T>(a, 1),
					       cuda_out<T>(a, 0), cuda_out<T>(a, 1) },
				   cuda_count(n->in[0]), 0, err));
}

} // namespace

CUDA_KERNEL(sgd, cuda_prepare, sgd_run);
