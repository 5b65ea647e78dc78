/* lars_cuda.cu: one LARS step, element by element. The trust ratio is worked out once a thread. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/guard/guard.h"
#include "trainer/ops/lars/lars_math.h"
}

namespace {

template <typename T> struct descend {
	static constexpr int width = vector_width<T>;
	struct lars_attr attr;
	const step_page *page;
	const double *step, *psum, *gsum;
	const T *g;
	T *p, *m; /* m: NULL without momentum */
	T rate = 0;

	__device__ void begin()
	{
		rate = (T)(page->lr * lars_ratio(&attr, psum, gsum, step[GUARD_FACTOR]));
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = (T)step[GUARD_FACTOR], decay = (T)attr.weight_decay;
		T d[W], w[W], v[W];

		if (step[GUARD_SKIP] != 0)
			return;
		load(d, g + i);
		load(w, p + i);
		if (m)
			load(v, m + i);
		for (int k = 0; k < W; k++) {
			d[k] = rate * (d[k] * factor + decay * w[k]);
			if (m)
				d[k] = v[k] = (T)attr.momentum * v[k] + d[k];
			w[k] -= d[k];
		}
		if (m)
			store(m + i, v);
		store(p + i, w);
	}
};

int lars_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct lars_attr attr = *static_cast<const struct lars_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a,
				   descend<T>{ attr, a->page, cuda_in<double>(a, 3), cuda_in<double>(a, 4),
					       cuda_in<double>(a, 5), cuda_in<T>(a, 1), cuda_out<T>(a, 0),
					       cuda_out<T>(a, 1) },
				   cuda_count(n->in[0]), 0, err));
}

} // namespace

CUDA_KERNEL(lars, cuda_prepare, lars_run);
