/* SPDX-License-Identifier: Apache-2.0 */
/* many.h: one launch for the elements of several nodes whose separate launches would take longer than their work. The
 * result of an element depends only on its node, so it has the same bits as with separate launches (cuda_each). */
#ifndef DPT_BACKENDS_CUDA_MANY_H
#define DPT_BACKENDS_CUDA_MANY_H

#include "trainer/backends/cuda/cuda.h"

#define MANY_NODES 48 /* per launch: limit of a kernel's parameters */
#define MANY_ROUNDS 4 /* vectors per thread before a node gets another block */

template <class F> struct many {
	int n;
	int first[MANY_NODES + 1]; /* first block of each node; then the total */
	int64_t count[MANY_NODES]; /* elements per node */
	F f[MANY_NODES];
};

/* Returns the node of a block. */
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

	process_block<F::width>(f, m.count[k], blockIdx.x - (unsigned)m.first[k],
				(unsigned)(m.first[k + 1] - m.first[k]));
}

/* Nodes collected for one launch. */
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

/* Runs the element loops of n nodes in as few launches as possible; of(node, args) creates the loop of a node. A node
 * with unaligned operands runs separately. */
template <class F, class Of>
static inline void many_each(void *const *states, const struct kernel_args *args, int n, const Of &of)
{
	many_batch<F> batch(args);

	for (int i = 0; i < n; i++) {
		const struct node *node = cuda_node(states[i]);
		const int64_t count = cuda_count(node->out[0]);

		if (cuda_aligned(node, &args[i]))
			batch.add(of(node, &args[i]), count);
		else
			cuda_each(node, &args[i], of(node, &args[i]), { count, 0 });
	}
	batch.send();
}

#endif
