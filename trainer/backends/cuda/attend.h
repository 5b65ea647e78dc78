/* attend.h: one warp answers one query: scores of 32 keys at a time, a lane each, then the mean of their values, lanes
 * side by side along the head, with a running maximum (Milakov and Gimelshein 2018). Any type, any head of up to
 * HEAD_MAX numbers. Attention over whole sequences and attention to what is kept are both made of it. */
#ifndef DPT_BACKENDS_CUDA_ATTEND_H
#define DPT_BACKENDS_CUDA_ATTEND_H

#include "trainer/backends/cuda/cuda.h"

#define HEAD_MAX 256
#define HEAD_EACH (HEAD_MAX / WARP) /* numbers of a head that a lane holds */
#define QUERIES_EACH 4		    /* warps of a block */

/* a[d] . b[d], the whole of it in this lane. */
template <typename A, typename T> __device__ inline A head_dot(const A *a, const T *b, int d)
{
	A sum = 0;

	for (int i = 0; i < d; i++)
		sum += a[i] * (A)widen(b[i]);
	return sum;
}

/* The numbers of a head that are this lane's: lane, lane + 32, … */
template <typename A, typename T> __device__ inline void head_take(A (&to)[HEAD_EACH], const T *from, int d)
{
	const int lane = (int)threadIdx.x % WARP;

	for (int k = 0; k < HEAD_EACH; k++)
		to[k] = k * WARP + lane < d ? (A)widen(from[k * WARP + lane]) : A(0);
}

/* to += factor * row, of the lane's numbers. */
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

/* q: the query in shared memory, already scaled. keys, values: `pitch` between positions. mask(j): what a probability
 * is multiplied by. Returns log sum exp; y: the lane's numbers of the answer. */
template <typename A, typename T, class F>
__device__ inline A warp_answer(const A *q, const T *keys, const T *values, int64_t pitch, int n, int d, const F &mask,
				A (&y)[HEAD_EACH])
{
	const int lane = (int)threadIdx.x % WARP;
	A max = -INFINITY, sum = 0;

	for (int from = 0; from < n; from += WARP) {
		const int j = from + lane, here = n - from < WARP ? n - from : WARP;
		const A s = inside(j < n) ? head_dot(q, keys + j * pitch, d) : A(-INFINITY);
		const A next = fmax(max, warp_max(s)), shrink = max == next ? A(1) : A(exp(max - next));
		const A p = j < n ? A(exp(s - next)) : A(0), weight = j < n ? p * mask(j) : A(0);

		sum = sum * shrink + warp_sum(p);
		max = next;
		for (int k = 0; k < HEAD_EACH; k++)
			y[k] *= shrink;
		for (int i = 0; i < here; i++)
			head_add(y, __shfl_sync(WHOLE_WARP, weight, i), values + (from + i) * pitch, d);
	}
	for (int k = 0; k < HEAD_EACH; k++)
		y[k] /= sum;
	return max + log(sum);
}

#endif
