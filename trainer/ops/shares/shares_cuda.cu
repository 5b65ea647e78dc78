/* shares_cuda.cu: one rank owns the whole of every flat tensor; of terms it has all. */
#include "trainer/backends/cuda/alone.h"
#include "trainer/backends/cuda/fold.h"

extern "C" {
#include "trainer/ops/shares/shares.h"
}

namespace {

int scatter_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int room = static_cast<const struct shares_attr *>(n->attr)->terms.room;

	return room ? cuda_fold(n, a, room, err) : 0;
}

} // namespace

CUDA_KERNEL(all_gather, alone_prepare, alone_run);
CUDA_KERNEL(reduce_scatter, alone_prepare, scatter_run);
