/* allreduce_cuda.cu: the sum over one rank: a copy, or nothing when in place; of terms the sum of its own. */
#include "trainer/backends/cuda/alone.h"
#include "trainer/backends/cuda/fold.h"

extern "C" {
#include "trainer/ops/terms/terms.h"
}

namespace {

int allreduce_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct terms_attr *terms = static_cast<const struct terms_attr *>(n->attr);

	if (terms && terms->room)
		return cuda_fold(n, a, terms->room, err);
	if (a->out[0] != a->in[0] && tensor_bytes(n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(n->in[0]), cudaMemcpyDeviceToDevice,
				(cudaStream_t)a->stream);
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(allreduce, alone_prepare, allreduce_run);
