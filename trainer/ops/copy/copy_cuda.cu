/* copy_cuda.cu: between the device and pinned memory, or within either: the addresses tell. */
#include "trainer/backends/cuda/cuda.h"

namespace {

int copy_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	if (tensor_bytes(n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(n->in[0]), cudaMemcpyDefault,
				(cudaStream_t)a->stream);
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(copy, cuda_prepare, copy_run);
