/* allreduce_cuda.cu: the sum over the ranks' devices. Without other ranks it copies, or does nothing when in place;
 * partial sums are added into one. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/partial_sums/partial_sums.h"
}

namespace {

int prepare_allreduce_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct partial_sums_attr *terms = static_cast<const struct partial_sums_attr *>(n->attr);

	return meet_prepare_sum(env, n, terms ? terms->room : 0, ret_state, err);
}

int copy_single_rank(const struct node *n, const struct kernel_args *a, struct err *err)
{
	if (a->out[0] != a->in[0] && tensor_bytes(n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(n->in[0]), cudaMemcpyDeviceToDevice,
				(cudaStream_t)a->stream);
	return cuda_launched(n, err);
}

int run_allreduce_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const int64_t count = cuda_count(m->node->in[0]);
	const struct ranks_call call = { a->in[0], a->out[0], count, m->node->in[0]->dtype, a->stream, 0 };

	if (m->room && m->devices)
		return meet_terms(m, a, 0, count / m->room, err);
	if (m->room)
		return cuda_fold(m->node, a, m->room, err);
	if (!m->devices)
		return copy_single_rank(m->node, a, err);
	return count ? m->devices->ops->allreduce(m->devices, &call, err) : 0;
}

} // namespace

MEET_KERNEL(allreduce, prepare_allreduce_cuda, run_allreduce_cuda);
