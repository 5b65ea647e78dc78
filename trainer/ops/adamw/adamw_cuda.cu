/* adamw_cuda.cu: one AdamW step, element by element. The bias corrections are worked out once a thread. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/adamw/adamw.h"
#include "trainer/ops/guard/guard.h"
}

namespace {

template <typename T> struct adapt {
	static constexpr int width = vector_width<T>;
	struct adamw_attr attr;
	const step_page *page;
	const double *step;
	const T *g;
	T *p, *m, *v;
	T rate = 0, root = 0; /* lr / (1 - b1^t), sqrt(1 - b2^t) */

	__device__ void begin()
	{
		rate = (T)(page->lr / (1 - pow(attr.beta1, step[GUARD_UPDATES])));
		root = (T)sqrt(1 - pow(attr.beta2, step[GUARD_UPDATES]));
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = (T)step[GUARD_FACTOR], lr = (T)page->lr, decay = (T)attr.weight_decay;
		const T rest1 = (T)(1 - attr.beta1), keep2 = (T)attr.beta2, rest2 = (T)(1 - attr.beta2);
		T d[W], w[W], first[W], second[W];

		if (step[GUARD_SKIP] != 0)
			return;
		load(d, g + i);
		load(w, p + i);
		load(first, m + i);
		load(second, v + i);
		for (int k = 0; k < W; k++) {
			d[k] *= factor;
			if (attr.coupled)
				d[k] += decay * w[k];
			else
				w[k] -= lr * decay * w[k];
			first[k] += rest1 * (d[k] - first[k]);
			second[k] = keep2 * second[k] + rest2 * d[k] * d[k];
			w[k] -= rate * first[k] / (sqrt(second[k]) / root + (T)attr.eps);
		}
		store(m + i, first);
		store(v + i, second);
		store(p + i, w);
	}
};

int adamw_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct adamw_attr attr = *static_cast<const struct adamw_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a,
				   adapt<T>{ attr, a->page, cuda_in<double>(a, 4), cuda_in<T>(a, 1), cuda_out<T>(a, 0),
					     cuda_out<T>(a, 1), cuda_out<T>(a, 2) },
				   cuda_count(n->in[0]), 0, err));
}

} // namespace

CUDA_KERNEL(adamw, cuda_prepare, adamw_run);
