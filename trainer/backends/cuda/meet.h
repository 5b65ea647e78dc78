/* meet.h: collective nodes: their state, and sums of partial sums along the summation tree (ops/terms/terms.h). These
 * are computed here from all ranks' terms, since NCCL guarantees no order. */
#ifndef DPT_BACKENDS_CUDA_MEET_H
#define DPT_BACKENDS_CUDA_MEET_H

#include <stdlib.h>

#include "trainer/backends/cuda/fold.h"
#include "trainer/backends/cuda/ranks.h"

struct collective_state {
	const struct node *node;
	struct device_comm *devices; /* NULL: single rank */
	int world, rank;
	int room; /* slots for partial sums; 0: plain sum */
};

static inline const struct collective_state *get_collective_state(const void *state)
{
	return static_cast<const struct collective_state *>(state);
}

static inline int meet_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct collective_state *m = static_cast<struct collective_state *>(calloc(1, sizeof(*m)));

	if (!m)
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	*m = collective_state{ n, env->devices, 1, 0, 0 };
	if (m->devices) {
		m->world = m->devices->world;
		m->rank = m->devices->rank;
	}
	*ret_state = m;
	return 0;
}

/* The same for sums; room: slots for partial sums. */
static inline int meet_prepare_sum(const struct kernel_env *env, struct node *n, int room, void **ret_state,
				   struct err *err)
{
	const enum dtype t = n->in[0]->dtype;
	int rc;

	if (env->devices && !ranks_sum(t))
		return err_set(err, ERR_UNSUPPORTED, "cannot sum %s over ranks", dtype_name(t));
	rc = meet_prepare(env, n, ret_state, err);
	if (rc)
		return rc;
	static_cast<struct collective_state *>(*ret_state)->room = room;
	if (room && env->devices)
		n->workspace_bytes = (size_t)env->devices->world * tensor_bytes(n->in[0]);
	return 0;
}

static inline void meet_release(void *state)
{
	free(state);
}

#define MEET_KERNEL(op, prepare_function, run_function)                                                             \
	extern "C" const struct kernel op##_cuda = { .pack_bytes = nullptr,                                        \
						     .prepare = (prepare_function),                                \
						     .run = (run_function),                                        \
						     .run_many = nullptr,                                          \
						     .release = meet_release,                                      \
						     .impl = nullptr }

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
		while (s.n > 1 && s.level[s.n - 2] == s.level[s.n - 1] &&
		       !(s.first[s.n - 2] >> s.level[s.n - 2] & 1)) {
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

template <typename T> static inline int meet_sum_terms(const struct collective_state *m, const struct kernel_args *a,
						       int64_t begin, int64_t n, struct err *err)
{
	const int64_t count = cuda_count(m->node->out[0]) / m->room;
	T *own = cuda_out<T>(a, 0), *all = static_cast<T *>(a->workspace);
	const struct ranks_call call = { own,	      all, count * m->room, m->node->out[0]->dtype, a->stream, 0 };
	int rc = cuda_each(m->node, a, fold_own<T>{ { own, count, a->page }, m->world }, { count, count }, err);

	if (!rc)
		rc = m->devices->ops->all_gather(m->devices, &call, err);
	if (rc)
		return rc;
	return cuda_each(m->node, a, tree<T>{ all, own + begin, count, begin, m->world, m->room, a->page }, { n, n },
			 err);
}

/* Computes [begin, begin + n) of the sum of all ranks' terms. */
static inline int meet_terms(const struct collective_state *m, const struct kernel_args *a, int64_t begin, int64_t n,
			     struct err *err)
{
	BY_MASTER(m->node->out[0]->dtype, T, return meet_sum_terms<T>(m, a, begin, n, err));
}

#endif
