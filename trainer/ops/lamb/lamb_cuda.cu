/* SPDX-License-Identifier: Apache-2.0 */
/* lamb_cuda.cu: one LAMB step in its two parts, elementwise. Each thread computes per-parameter values once. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/lamb/lamb.h"
}

inline namespace lamb_kernels {

template <typename T> struct lamb_update_rule {
	static constexpr int width = vector_width<T>;
	struct lamb_attr attr;
	const double *step;
	const T *g, *p;
	T *u, *m, *v;
	T share1 = 0, share2 = 0; /* 1 / (1 - b^t) */

	__device__ void begin()
	{
		share1 = (T)(1 / (1 - pow(attr.beta1, step[STEP_GUARD_UPDATES])));
		share2 = (T)(1 / (1 - pow(attr.beta2, step[STEP_GUARD_UPDATES])));
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = (T)step[STEP_GUARD_FACTOR], decay = (T)attr.weight_decay;
		const T keep1 = (T)attr.beta1, rest1 = (T)(1 - attr.beta1);
		const T keep2 = (T)attr.beta2, rest2 = (T)(1 - attr.beta2);
		T d[W] = {}, w[W], first[W], second[W];

		if (step[STEP_GUARD_SKIP] != 0) {
			store(u + i, d);
			return;
		}
		load(d, g + i);
		load(w, p + i);
		load(first, m + i);
		load(second, v + i);
		for (int k = 0; k < W; k++) {
			d[k] *= factor;
			first[k] = keep1 * first[k] + rest1 * d[k];
			second[k] = keep2 * second[k] + rest2 * d[k] * d[k];
			d[k] = first[k] * share1 / (sqrt(second[k] * share2) + (T)attr.eps) + decay * w[k];
		}
		store(m + i, first);
		store(v + i, second);
		store(u + i, d);
	}
};

template <typename T> struct lamb_apply_rule {
	static constexpr int width = vector_width<T>;
	const step_page *page;
	const double *step, *psum, *usum;
	const T *u;
	T *p;
	T rate = 0;

	__device__ void begin()
	{
		rate = (T)(page->lr * lamb_ratio(psum, usum));
	}

	template <int W> __device__ void at(int64_t i) const
	{
		T d[W], w[W];

		if (step[STEP_GUARD_SKIP] != 0)
			return;
		load(d, u + i);
		load(w, p + i);
		for (int k = 0; k < W; k++)
			w[k] -= rate * d[k];
		store(p + i, w);
	}
};

int run_lamb_update_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct lamb_attr attr = *static_cast<const struct lamb_attr *>(n->attr);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a,
				   lamb_update_rule<T>{ attr, cuda_in<double>(a, 4), cuda_in<T>(a, 1), cuda_in<T>(a, 0),
							cuda_out<T>(a, 0), cuda_out<T>(a, 1), cuda_out<T>(a, 2) },
				   { cuda_count(n->in[0]), 0 }, err));
}

int run_lamb_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a,
				   lamb_apply_rule<T>{ a->page, cuda_in<double>(a, 2), cuda_in<double>(a, 3),
						       cuda_in<double>(a, 4), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
				   { cuda_count(n->in[0]), 0 }, err));
}

} // namespace lamb_kernels

CUDA_KERNEL(lamb_update, cuda_prepare, run_lamb_update_cuda);
CUDA_KERNEL(lamb, cuda_prepare, run_lamb_cuda);
