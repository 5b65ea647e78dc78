/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_update.h: one optimiser step, elementwise: gradient, parameter and moments are each read once and written once.
 * A skipped step changes nothing. Operands are those of struct update_spec (trainer/ops/ops.h).
 *
 * R, the update rule, has: moments, the most moments it uses; of(node, args), which creates it; begin(page, step),
 * called once per thread; and one(d, w, v), which updates parameter w and moments v by d, the scaled gradient. */
#ifndef DPT_BACKENDS_CUDA_UPDATE_H
#define DPT_BACKENDS_CUDA_UPDATE_H

#include "trainer/backends/cuda/many.h"

extern "C" {
#include "trainer/ops/step_guard/step_guard.h"
}

template <typename T, class R> struct update_loop {
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

template <typename T, class R>
static inline struct update_loop<T, R> make_update_loop(const struct node *n, const struct kernel_args *a)
{
	struct update_loop<T, R> u = { R::of(n, a),	  a->page, cuda_in<double>(a, 2 + R::moments), cuda_in<T>(a, 1),
				       cuda_out<T>(a, 0), {} };

	for (int j = 0; j < R::moments; j++)
		u.m[j] = cuda_out<T>(a, 1 + j);
	return u;
}

/* run and run_many of a kernel. */
template <template <typename> class R>
static int run_update(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_MASTER(n->in[0]->dtype, T,
		  return cuda_each(n, a, make_update_loop<T, R<T>>(n, a), { cuda_count(n->in[0]), 0 }, err));
}

template <template <typename> class R>
static int run_update_many(void *const *states, const struct kernel_args *args, int n, struct err *err)
{
	BY_MASTER(cuda_node(states[0])->in[0]->dtype, T,
		  return many_each<update_loop<T, R<T>>>(states, args, n, make_update_loop<T, R<T>>, err));
}

#endif
