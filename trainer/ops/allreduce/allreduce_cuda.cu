/* allreduce_cuda.cu: the sum over the ranks' devices; with nobody to meet a copy, or nothing when in place, and of
 * terms the sum of its own. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/partial_sums/partial_sums.h"
}

namespace {

int allreduce_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct partial_sums_attr *terms = static_cast<const struct partial_sums_attr *>(n->attr);

	return meet_prepare_sum(env, n, terms ? terms->room : 0, ret_state, err);
}

int copy_alone(const struct node *n, const struct kernel_args *a, struct err *err)
{
	if (a->out[0] != a->in[0] && tensor_bytes(n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(n->in[0]), cudaMemcpyDeviceToDevice,
				(cudaStream_t)a->stream);
	return cuda_launched(n, err);
}

int allreduce_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct meeting *m = meeting_of(state);
	const int64_t count = cuda_count(m->node->in[0]);
	const struct ranks_call call = { a->in[0], a->out[0], count, m->node->in[0]->dtype, a->stream, 0 };

	if (m->room && m->devices)
		return meet_terms(m, a, 0, count / m->room, err);
	if (m->room)
		return cuda_fold(m->node, a, m->room, err);
	if (!m->devices)
		return copy_alone(m->node, a, err);
	return count ? m->devices->ops->allreduce(m->devices, &call, err) : 0;
}

} // namespace

MEET_KERNEL(allreduce, allreduce_prepare, allreduce_run);
