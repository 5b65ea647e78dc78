/* SPDX-License-Identifier: Apache-2.0 */
/* places_cuda.cu: the places of tokens: a thread looks back to where its document begins, at most T tokens. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/places/places.h"
}

inline namespace places_kernels
{

struct place_finder {
	static constexpr int width = 1;
	const int32_t *marked;
	int32_t *tokens, *places;
	int64_t t;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t first = i / t * t;
		int64_t begin = i;

		while (begin > first && marked[begin] >= 0)
			begin--;
		tokens[i] = marked[i] < 0 ? DOCUMENT_MARK(marked[i]) : marked[i];
		places[i] = (int32_t)(i - begin);
	}
};

void run_places_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	cuda_each(n, a,
		  place_finder{ cuda_in<int32_t>(a, 0), cuda_out<int32_t>(a, 0), cuda_out<int32_t>(a, 1),
				n->in[0]->shape.dim[1] },
		  { cuda_count(n->in[0]), 0 });
}

} // namespace places_kernels

CUDA_KERNEL(places, cuda_prepare, run_places_cuda);
