/* partial_sums_cuda.cu: which terms a micro-batch's is added to is worked out once a thread, from the page. */
#include "trainer/backends/cuda/fold.h"

extern "C" {
#include "trainer/ops/partial_sums/partial_sums.h"
}

namespace {

int room_of(const struct node *n)
{
	return static_cast<const struct partial_sums_attr *>(n->attr)->room;
}

template <typename T> struct push {
	static constexpr int width = vector_width<T>;
	T *terms;
	const T *x;
	int64_t count; /* elements of a term */
	const step_page *page;
	int place = -1, merges = 0; /* the term that is written; those from it on that x is added to */

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

int push_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t count = cuda_count(n->in[1]);

	BY_MASTER(n->in[1]->dtype, T,
		  return cuda_each(n, a, push<T>{ cuda_out<T>(a, 0), cuda_in<T>(a, 1), count, a->page }, count, count,
				   err));
}

int fold_run(void *state, const struct kernel_args *a, struct err *err)
{
	return cuda_fold(cuda_node(state), a, room_of(cuda_node(state)), err);
}

} // namespace

CUDA_KERNEL(term_push, cuda_prepare, push_run);
CUDA_KERNEL(term_fold, cuda_prepare, fold_run);
