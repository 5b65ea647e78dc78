/* shard_collectives_cuda.cu: ranges between the ranks' devices, in place; one rank owns the whole of every flat tensor, and of
 * terms it has all. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/shard_collectives/shard_collectives.h"
}

namespace {

int room_of(const struct node *n)
{
	return static_cast<const struct shard_collectives_attr *>(n->attr)->terms.room;
}

int check_even(const struct meeting *m, int room, struct err *err)
{
	const int64_t count = cuda_count(m->node->in[0]) / (room ? room : 1);

	return count % m->world == 0 ? 0
				     : err_set(err, ERR_USAGE, "%lld elements cannot be shared by %d ranks",
					       (long long)count, m->world);
}

int gather_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = meet_prepare(env, n, ret_state, err);

	return rc ? rc : check_even(meeting_of(*ret_state), 0, err);
}

int scatter_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = meet_prepare_sum(env, n, room_of(n), ret_state, err);

	return rc ? rc : check_even(meeting_of(*ret_state), room_of(n), err);
}

/* Also where an earlier program of the step has done it (node->once): which one this is stands in the device's memory,
 * and what is gathered is the same. */
int gather_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct meeting *m = meeting_of(state);
	const enum dtype t = m->node->in[0]->dtype;
	const int64_t each = cuda_count(m->node->in[0]) / m->world;
	const char *own = cuda_out<char>(a, 0) + (size_t)(m->rank * each) * dtype_bytes(t);
	const struct ranks_call call = { own, a->out[0], each, t, a->stream, 0 };

	return m->devices && each ? m->devices->ops->all_gather(m->devices, &call, err) : 0;
}

int scatter_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct meeting *m = meeting_of(state);
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

MEET_KERNEL(all_gather, gather_prepare, gather_run);
MEET_KERNEL(reduce_scatter, scatter_prepare, scatter_run);
