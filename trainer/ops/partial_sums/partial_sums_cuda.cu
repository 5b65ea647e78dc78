/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums_cuda.cu: partial sums. Each thread determines once from the page which terms this micro-batch's term is
 * added to. */
#include "trainer/backends/cuda/fold.h"

extern "C" {
#include "trainer/ops/partial_sums/partial_sums.h"
}

inline namespace partial_sums_kernels {

int read_terms_room(const struct node *n)
{
	return static_cast<const struct partial_sums_attr *>(n->attr)->room;
}

template <typename T> struct term_pusher {
	static constexpr int width = vector_width<T>;
	T *terms;
	const T *x;
	int64_t count; /* elements per term */
	const step_page *page;
	int place = -1, merges = 0; /* the slot that is written; the number of terms from it on to which x is added */

	__device__ void begin()
	{
		const struct reduction_tree *l = &page->leaves;

		if (page->micro >= l->n)
			return;
		merges = reduction_tree_merges(l->first, l->first + page->micro);
		place = reduction_tree_roots(l->first, page->micro, nullptr) - merges;
	}

	template <int W> __device__ void at(int64_t i) const
	{
		T sum[W], term[W];

		if (place < 0)
			return;
		load(sum, x + i);
		for (int k = place + merges - 1; k >= place; k--) {
			load(term, terms + k * count + i);
			for (int w = 0; w < W; w++)
				sum[w] = term[w] + sum[w];
		}
		store(terms + place * count + i, sum);
	}
};

void run_term_push_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t count = cuda_count(n->in[1]);

	BY_MASTER(n->in[1]->dtype, T,
		  cuda_each(n, a, term_pusher<T>{ cuda_out<T>(a, 0), cuda_in<T>(a, 1), count, a->page },
			    { count, count }));
}

void run_term_fold_cuda(void *state, const struct kernel_args *a)
{
	cuda_fold(cuda_node(state), a, read_terms_room(cuda_node(state)));
}

} // namespace partial_sums_kernels

CUDA_KERNEL(term_push, cuda_prepare, run_term_push_cuda);
CUDA_KERNEL(term_fold, cuda_prepare, run_term_fold_cuda);
