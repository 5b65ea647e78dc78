/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_cuda.cu: exchanges between the ranks' devices. A single rank owns every flat tensor entirely, and all its
 * partial sums: these are added into one. Sums along the reduction tree are computed here from all ranks' terms, since
 * NCCL guarantees no order. */
#include <stdlib.h>

#include "trainer/backends/cuda/fold.h"

extern "C" {
#include "trainer/backends/cuda/ranks.h"
#include "trainer/ops/collectives/collectives.h"
}

inline namespace collectives_kernels {

struct collective_state {
	const struct node *node;
	struct device_comm *devices; /* NULL: single rank */
	int world, rank;
	int room;      /* slots for partial sums; 0: plain sum */
	int64_t count; /* elements; of partial sums: of one term */
};

const struct collective_state *get_collective_state(const void *state)
{
	return static_cast<const struct collective_state *>(state);
}

int prepare_collective(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const auto *attr = static_cast<const struct collective_attr *>(n->attr);
	const int room = attr ? attr->terms.room : 0;
	struct collective_state *m = static_cast<struct collective_state *>(mem_zalloc(sizeof(*m)));

	(void)err;
	*m = collective_state{ n, env->devices, 1,
			       0, room,		cuda_count(n->n_in ? n->in[0] : n->out[0]) / (room ? room : 1) };
	if (m->devices) {
		m->world = m->devices->world;
		m->rank = m->devices->rank;
	}
	*ret_state = m;
	return 0;
}

int prepare_sum(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const enum dtype t = n->in[0]->dtype;
	int rc;

	if (env->devices && !ranks_sum(t))
		return err_set(err, ERR_UNSUPPORTED, "cannot sum %s over ranks", dtype_name(t));
	rc = prepare_collective(env, n, ret_state, err);
	if (!rc && env->devices && get_collective_state(*ret_state)->room)
		n->workspace_bytes = (size_t)env->devices->world * tensor_bytes(n->in[0]);
	return rc;
}

int check_divisible(const struct collective_state *m, struct err *err)
{
	return m->count % m->world == 0 ? 0
					: err_set(err, ERR_USAGE, "%lld elements do not divide into %d ranks",
						  (long long)m->count, m->world);
}

int prepare_all_gather(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = prepare_collective(env, n, ret_state, err);

	return rc ? rc : check_divisible(get_collective_state(*ret_state), err);
}

int prepare_reduce_scatter(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = prepare_sum(env, n, ret_state, err);

	return rc ? rc : check_divisible(get_collective_state(*ret_state), err);
}

void release_collective(void *state)
{
	free(state);
}

/* Adds all ranks' terms and writes elements [begin, begin + n) of the sum to this rank's first slot. If the group is
 * not all the ranks with leaves (leaves.parts != world), each rank has folded its own terms, and those sums are added
 * in rank order. */
template <typename T> struct tree {
	static constexpr int width = 1;
	const T *terms; /* [world][room][count] */
	T *to;		/* address of element begin */
	int64_t count, begin;
	int world, room;
	const struct step_page *page;

	struct stack {
		T sum[REDUCTION_TREE_ROOTS_MAX];
		int64_t first[REDUCTION_TREE_ROOTS_MAX];
		int level[REDUCTION_TREE_ROOTS_MAX];
		int n;
	};

	__device__ static void add_upper(stack &s)
	{
		s.n--;
		s.sum[s.n - 1] = s.sum[s.n - 1] + s.sum[s.n];
	}

	__device__ static void put(stack &s, T term, int64_t first, int level)
	{
		s.sum[s.n] = term;
		s.first[s.n] = first;
		s.level[s.n++] = level;
		while (s.n > 1 && s.level[s.n - 2] == s.level[s.n - 1] && !(s.first[s.n - 2] >> s.level[s.n - 2] & 1)) {
			add_upper(s);
			s.level[s.n - 1]++;
		}
	}

	__device__ T of_leaves(int64_t i) const
	{
		stack s;

		s.n = 0;
		for (int p = 0; p < world; p++) {
			const struct reduction_tree l = reduction_tree_part(page->leaves.all, p, world);
			const T *term = terms + p * room * count + i;
			int64_t first = l.first;

			for (; first < l.first + l.n; term += count) {
				const int level = reduction_tree_level(first, l.first + l.n - first);

				put(s, *term, first, level);
				first += (int64_t)1 << level;
			}
		}
		while (s.n > 1)
			add_upper(s);
		return s.sum[0];
	}

	template <int W> __device__ void at(int64_t k) const
	{
		T sum = terms[begin + k];

		if (page->leaves.parts == world) {
			to[k] = of_leaves(begin + k);
			return;
		}
		for (int r = 1; r < world; r++)
			sum = sum + terms[r * room * count + begin + k];
		to[k] = sum;
	}
};

/* Folds the rank's own terms first, if the node's group is not all the ranks with leaves. */
template <typename T> struct fold_own : fold<T> {
	int world;

	template <int W> __device__ void at(int64_t i) const
	{
		if (this->page->leaves.parts != world)
			fold<T>::template at<W>(i);
	}
};

template <typename T>
int add_terms_along_tree(const struct collective_state *m, const struct kernel_args *a, int64_t begin, int64_t n,
			 struct err *err)
{
	const int64_t count = cuda_count(m->node->out[0]) / m->room;
	T *own = cuda_out<T>(a, 0), *all = static_cast<T *>(a->workspace);
	const struct ranks_call call = { own, all, count * m->room, m->node->out[0]->dtype, a->stream, 0 };
	int rc;

	cuda_each(m->node, a, fold_own<T>{ { own, count, a->page }, m->world }, { count, count });
	rc = m->devices->ops->all_gather(m->devices, &call, err);
	if (!rc)
		cuda_each(m->node, a, tree<T>{ all, own + begin, count, begin, m->world, m->room, a->page }, { n, n });
	return rc;
}

/* Computes [begin, begin + n) of the sum of all ranks' terms. */
int add_all_terms(const struct collective_state *m, const struct kernel_args *a, int64_t begin, int64_t n,
		  struct err *err)
{
	BY_MASTER(m->node->out[0]->dtype, T, return add_terms_along_tree<T>(m, a, begin, n, err));
}

int run_allreduce_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const struct ranks_call call = { a->in[0], a->out[0], m->count, m->node->in[0]->dtype, a->stream, 0 };

	if (m->room && m->devices)
		return add_all_terms(m, a, 0, m->count, err);
	if (m->devices)
		return m->count ? m->devices->ops->allreduce(m->devices, &call, err) : 0;
	if (m->room)
		cuda_fold(m->node, a, m->room);
	else if (a->out[0] != a->in[0] && tensor_bytes(m->node->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(m->node->in[0]), cudaMemcpyDeviceToDevice,
				(cudaStream_t)a->stream);
	return 0;
}

/* Runs even if an earlier program of the step has gathered already (node->once): which program this is, is known only
 * in device memory. The result is the same. */
int run_all_gather_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const enum dtype t = m->node->in[0]->dtype;
	const int64_t each = m->count / m->world;
	const char *own = cuda_out<char>(a, 0) + (size_t)(m->rank * each) * dtype_bytes(t);
	const struct ranks_call call = { own, a->out[0], each, t, a->stream, 0 };

	return m->devices && each ? m->devices->ops->all_gather(m->devices, &call, err) : 0;
}

int run_reduce_scatter_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const enum dtype t = m->node->in[0]->dtype;
	const int64_t each = m->count / m->world;
	char *own = cuda_out<char>(a, 0) + (size_t)(m->rank * each) * dtype_bytes(t);
	const struct ranks_call call = { a->in[0], own, each, t, a->stream, 0 };

	if (!m->devices && m->room)
		cuda_fold(m->node, a, m->room);
	if (!m->devices)
		return 0;
	if (m->room)
		return add_all_terms(m, a, m->rank * each, each, err);
	return each ? m->devices->ops->reduce_scatter(m->devices, &call, err) : 0;
}

struct ranks_call make_peer_call(const struct collective_state *m, const struct kernel_args *a)
{
	const struct node *n = m->node;
	const struct tensor *t = n->n_in ? n->in[0] : n->out[0];

	return { n->n_in ? a->in[0] : nullptr,
		 n->n_in ? nullptr : a->out[0],
		 m->count,
		 t->dtype,
		 a->stream,
		 static_cast<const struct collective_attr *>(n->attr)->rank };
}

int run_send_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const struct ranks_call call = make_peer_call(m, a);

	return m->devices && call.count ? m->devices->ops->send(m->devices, &call, err) : 0;
}

int run_recv_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const struct ranks_call call = make_peer_call(m, a);

	return m->devices && call.count ? m->devices->ops->recv(m->devices, &call, err) : 0;
}

} // namespace collectives_kernels

#define COLLECTIVE_KERNEL_CUDA(op, prepare_function)                                                                   \
	extern "C" const struct kernel op##_cuda = { .pack_bytes = nullptr,                                            \
						     .prepare = (prepare_function),                                    \
						     .run = nullptr,                                                   \
						     .communicate = run_##op##_cuda,                                   \
						     .run_many = nullptr,                                              \
						     .release = release_collective,                                    \
						     .impl = nullptr }

COLLECTIVE_KERNEL_CUDA(allreduce, prepare_sum);
COLLECTIVE_KERNEL_CUDA(all_gather, prepare_all_gather);
COLLECTIVE_KERNEL_CUDA(reduce_scatter, prepare_reduce_scatter);
COLLECTIVE_KERNEL_CUDA(send, prepare_collective);
COLLECTIVE_KERNEL_CUDA(recv, prepare_collective);
