/* SPDX-License-Identifier: Apache-2.0 */
/* attend.h: attention of one query by one warp: scores of 32 keys at a time, one per lane, then the weighted mean of
 * the values with lanes along the head, using a running maximum (Milakov and Gimelshein 2018). Any type, any head size
 * up to HEAD_MAX. Shared by attention over whole sequences and attention with a KV cache. */
#ifndef DPT_BACKENDS_CUDA_ATTEND_H
#define DPT_BACKENDS_CUDA_ATTEND_H

#include "trainer/backends/cuda/cuda.h"

#define HEAD_MAX 256
#define HEAD_EACH (HEAD_MAX / WARP) /* elements of a head per lane */
#define QUERIES_EACH 4		    /* warps per block */

/* Returns a[d] . b[d], computed by this lane alone. */
template <typename A, typename T> __device__ inline A head_dot(const A *a, const T *b, int d)
{
	A sum = 0;

	for (int i = 0; i < d; i++)
		sum += a[i] * (A)widen(b[i]);
	return sum;
}

template <typename A> __device__ inline A soft_cap(A score, A cap)
{
	return cap > 0 ? cap * A(tanh(score / cap)) : score;
}

/* to += factor * row, for this lane's elements: lane, lane + 32, … */
template <typename A, typename T> __device__ inline void head_add(A (&to)[HEAD_EACH], A factor, const T *row, int d)
{
	const int lane = (int)threadIdx.x % WARP;

	for (int k = 0; k < HEAD_EACH; k++)
		if (inside(k * WARP + lane < d))
			to[k] += factor * (A)widen(row[k * WARP + lane]);
}

template <typename A, typename T> __device__ inline void head_put(T *to, const A (&from)[HEAD_EACH], A factor, int d)
{
	const int lane = (int)threadIdx.x % WARP;

	for (int k = 0; k < HEAD_EACH; k++)
		if (inside(k * WARP + lane < d))
			to[k * WARP + lane] = narrow<T>((acc_t<T>)(from[k] * factor));
}

/* Keys and values of one head: n positions, `pitch` elements apart, d elements each. */
template <typename T> struct head_rows {
	const T *keys, *values;
	int64_t pitch;
	int n, d;
	double cap; /* of scores; 0: none */
};

/* Attends to n positions. q: the query in shared memory, already scaled. mask(j): factor of a probability. Returns
 * log-sum-exp; y: the lane's elements of the output. */
template <typename A, typename T, class F>
__device__ inline A warp_answer(const A *q, const struct head_rows<T> &kv, const F &mask, A (&y)[HEAD_EACH])
{
	const int n = kv.n, d = kv.d;
	const int lane = (int)threadIdx.x % WARP;
	A max = -INFINITY, sum = 0;

	for (int from = 0; from < n; from += WARP) {
		const int j = from + lane, here = n - from < WARP ? n - from : WARP;
		const A s = inside(j < n) ? soft_cap(head_dot(q, kv.keys + j * kv.pitch, d), (A)kv.cap) : A(-INFINITY);
		const A next = fmax(max, warp_max(s)), shrink = max == next ? A(1) : A(exp(max - next));
		const A p = j < n ? A(exp(s - next)) : A(0), weight = j < n ? p * mask(j) : A(0);

		sum = sum * shrink + warp_sum(p);
		max = next;
		for (int k = 0; k < HEAD_EACH; k++)
			y[k] *= shrink;
		for (int i = 0; i < here; i++)
			head_add(y, __shfl_sync(WHOLE_WARP, weight, i), kv.values + (from + i) * kv.pitch, d);
	}
	for (int k = 0; k < HEAD_EACH; k++)
		y[k] /= sum;
	return max + log(sum);
}

#endif
