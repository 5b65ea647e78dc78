/* descend.h: one optimiser step, elementwise: gradient, parameter and moments are each read once and written once. A
 * skipped step changes nothing.
 *
 * R, the update rule, has: moments, the most moments it uses; begin(page, step), called once per thread; and one(d, w,
 * v), which updates parameter w and moments v by d, the scaled gradient. */
#ifndef DPT_BACKENDS_CUDA_DESCEND_H
#define DPT_BACKENDS_CUDA_DESCEND_H

#include "trainer/backends/cuda/many.h"

extern "C" {
#include "trainer/ops/step_guard/step_guard.h"
}

template <typename T, class R> struct descend {
	static constexpr int width = vector_width<T>;
	R rule;
	const step_page *page;
	const double *step; /* output of guard */
	const T *g;
	T *p, *m[R::moments]; /* moments: NULL if unused */

	__device__ void begin()
	{
		rule.begin(page, step);
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const T factor = (T)step[STEP_GUARD_FACTOR];
		T d[W], w[W], v[R::moments][W] = {};

		if (step[STEP_GUARD_SKIP] != 0)
			return;
		load(d, g + i);
		load(w, p + i);
		for (int j = 0; j < R::moments; j++)
			if (m[j])
				load(v[j], m[j] + i);
		for (int k = 0; k < W; k++) {
			T of[R::moments];

			for (int j = 0; j < R::moments; j++)
				of[j] = v[j][k];
			rule.one(d[k] * factor, w[k], of);
			for (int j = 0; j < R::moments; j++)
				v[j][k] = of[j];
		}
		for (int j = 0; j < R::moments; j++)
			if (m[j])
				store(m[j] + i, v[j]);
		store(p + i, w);
	}
};

/* Creates the loop of a node with operands parameter, gradient, moments and results parameter, moments. step: index of
 * the operand that is guard's output. */
template <typename T, class R>
static inline struct descend<T, R> descend_of(const struct kernel_args *a, const R &rule, int step)
{
	struct descend<T, R> d = { rule, a->page, cuda_in<double>(a, step), cuda_in<T>(a, 1), cuda_out<T>(a, 0), {} };

	for (int j = 0; j < R::moments; j++)
		d.m[j] = cuda_out<T>(a, 1 + j);
	return d;
}

template <typename T, class R>
static inline int descend_run(const struct node *n, const struct kernel_args *a, const R &rule, int step,
			      struct err *err)
{
	return cuda_each(n, a, descend_of<T>(a, rule, step), { cuda_count(n->in[0]), 0 }, err);
}

#endif
