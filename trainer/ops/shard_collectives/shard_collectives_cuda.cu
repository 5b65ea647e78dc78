/* shard_collectives_cuda.cu: exchanges ranges between the ranks' devices, in place. A single rank owns every flat
 * tensor entirely, and all its partial sums. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/shard_collectives/shard_collectives.h"
}

namespace {

int read_shares_room(const struct node *n)
{
	return static_cast<const struct shard_collectives_attr *>(n->attr)->terms.room;
}

int check_divisible(const struct collective_state *m, int room, struct err *err)
{
	const int64_t count = cuda_count(m->node->in[0]) / (room ? room : 1);

	return count % m->world == 0 ? 0
				     : err_set(err, ERR_USAGE, "%lld elements do not divide into %d ranks",
					       (long long)count, m->world);
}

int prepare_all_gather_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = meet_prepare(env, n, ret_state, err);

	return rc ? rc : check_divisible(get_collective_state(*ret_state), 0, err);
}

int prepare_reduce_scatter_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = meet_prepare_sum(env, n, read_shares_room(n), ret_state, err);

	return rc ? rc : check_divisible(get_collective_state(*ret_state), read_shares_room(n), err);
}

/* Runs even if an earlier program of the step has gathered already (node->once): which program this is, is known only
 * in device memory. The result is the same. */
int run_all_gather_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const enum dtype t = m->node->in[0]->dtype;
	const int64_t each = cuda_count(m->node->in[0]) / m->world;
	const char *own = cuda_out<char>(a, 0) + (size_t)(m->rank * each) * dtype_bytes(t);
	const struct ranks_call call = { own, a->out[0], each, t, a->stream, 0 };

	return m->devices && each ? m->devices->ops->all_gather(m->devices, &call, err) : 0;
}

int run_reduce_scatter_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const enum dtype t = m->node->in[0]->dtype;
	const int64_t each = cuda_count(m->node->in[0]) / (m->room ? m->room : 1) / m->world;
	char *own = cuda_out<char>(a, 0) + (size_t)(m->rank * each) * dtype_bytes(t);
	const struct ranks_call call = { a->in[0], own, each, t, a->stream, 0 };

	if (!m->devices)
		return m->room ? cuda_fold(m->node, a, m->room, err) : 0;
	if (m->room)
		return meet_terms(m, a, m->rank * each, each, err);
	return each ? m->devices->ops->reduce_scatter(m->devices, &call, err) : 0;
}

} // namespace

MEET_KERNEL(all_gather, prepare_all_gather_cuda, run_all_gather_cuda);
MEET_KERNEL(reduce_scatter, prepare_reduce_scatter_cuda, run_reduce_scatter_cuda);
