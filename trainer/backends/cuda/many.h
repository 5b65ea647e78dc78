/* many.h: one launch for the elements of several nodes, where a launch of each would take longer than its work. What
 * becomes of an element depends on its node alone, so the bits are those of single launches (cuda_each). */
#ifndef DPT_BACKENDS_CUDA_MANY_H
#define DPT_BACKENDS_CUDA_MANY_H

#include "trainer/backends/cuda/cuda.h"

#define MANY_NODES 48 /* of one launch: what a kernel's operands have room for */
#define MANY_ROUNDS 4 /* of a block over its node's elements, before the node gets another block */

template <class F> struct many {
	int n;
	int first[MANY_NODES + 1]; /* block of each node; behind the last one: of all */
	int64_t count[MANY_NODES]; /* elements */
	F f[MANY_NODES];
};

/* Which node a block belongs to. */
template <class F> __device__ inline int many_find(const many<F> &m, int block)
{
	int k = 0;

	while (k + 1 < m.n && m.first[k + 1] <= block)
		k++;
	return k;
}

template <class F> __global__ void many_kernel(many<F> m)
{
	const int k = many_find(m, (int)blockIdx.x);
	F f = m.f[k];

	each_of<F::width>(f, m.count[k], blockIdx.x - (unsigned)m.first[k], (unsigned)(m.first[k + 1] - m.first[k]));
}

/* Nodes that wait for a launch together. */
template <class F> struct many_batch {
	const struct kernel_args *args;
	many<F> m;

	explicit many_batch(const struct kernel_args *a) : args(a), m{}
	{
	}

	void send()
	{
		if (m.n)
			launch(args, dim3((unsigned)m.first[m.n]), BLOCK_THREADS, many_kernel<F>, m);
		m.n = 0;
	}

	void add(const F &f, int64_t count)
	{
		const unsigned blocks = cuda_blocks(count, (int64_t)BLOCK_THREADS * F::width * MANY_ROUNDS);

		if (!count)
			return;
		if (m.n == MANY_NODES)
			send();
		m.f[m.n] = f;
		m.count[m.n] = count;
		m.first[m.n + 1] = m.first[m.n] + (int)(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX);
		m.n++;
	}
};

/* Runs over elements, in as few launches as fit, what of(node, args) makes of each of n nodes; count: of its elements.
 * A node whose operands are not aligned runs by itself. */
template <class F, class Of>
static inline int many_each(void *const *states, const struct kernel_args *args, int n, const Of &of, struct err *err)
{
	many_batch<F> batch(args);
	int rc = 0;

	for (int i = 0; !rc && i < n; i++) {
		const struct node *node = cuda_node(states[i]);
		const int64_t count = cuda_count(node->out[0]);

		if (cuda_aligned(node, &args[i]))
			batch.add(of(node, &args[i]), count);
		else
			rc = cuda_each(node, &args[i], of(node, &args[i]), count, 0, err);
	}
	batch.send();
	return rc ? rc : cuda_launched(cuda_node(states[0]), err);
}

#endif
