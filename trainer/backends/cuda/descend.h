/* descend.h: one step of an optimiser, element by element: gradient, parameter and moments are read once and written
 * once. A step that is skipped changes nothing.
 *
 * R, the rule, has: moments, how many it may keep; begin(page, step), called once a thread; and one(d, w, v), which
 * changes parameter w and moments v by d, the gradient times the factor of its norm. */
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
	const double *step; /* guard's */
	const T *g;
	T *p, *m[R::moments]; /* moments: NULL where the run keeps none */

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

/* Of a node whose operands are parameter, gradient and moments, and whose results are parameter and moments. step:
 * which operand is guard's. */
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
	return cuda_each(n, a, descend_of<T>(a, rule, step), cuda_count(n->in[0]), 0, err);
}

#endif
