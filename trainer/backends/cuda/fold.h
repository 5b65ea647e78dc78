/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h: adds a rank's partial sums along the reduction tree (graph/reduction_tree.h) into one: the op term_fold, and
 * collectives on partial sums of a single rank. */
#ifndef DPT_BACKENDS_CUDA_FOLD_H
#define DPT_BACKENDS_CUDA_FOLD_H

#include "trainer/backends/cuda/cuda.h"

/* A rank's roots have no siblings among them, so they are added from the right. */
template <typename T> struct fold {
	static constexpr int width = vector_width<T>;
	T *terms;
	int64_t count; /* elements per term */
	const step_page *page;
	int roots = 0;

	__device__ void begin()
	{
		roots = reduction_tree_roots(page->leaves.first, page->leaves.n, nullptr);
	}

	template <int W> __device__ void at(int64_t i) const
	{
		T sum[W] = {}, term[W];

		if (roots == 1 || !page->leaves.parts)
			return;
		for (int k = roots - 1; k >= 0; k--) {
			load(term, terms + k * count + i);
			for (int w = 0; w < W; w++)
				sum[w] = k == roots - 1 ? term[w] : term[w] + sum[w];
		}
		store(terms + i, sum);
	}
};

/* Works in place, in out[0]. room: slots for partial sums. */
static inline void cuda_fold(const struct node *n, const struct kernel_args *a, int room)
{
	const int64_t count = cuda_count(n->out[0]) / room;

	BY_MASTER(n->out[0]->dtype, T, cuda_each(n, a, fold<T>{ cuda_out<T>(a, 0), count, a->page }, { count, count }));
}

#endif
