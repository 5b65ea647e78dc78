/* SPDX-License-Identifier: Apache-2.0 */
/* product.h: D(m, n) = sum over k of A(m, k) B(k, n), in tiles of 64 x 64 x 16 through shared memory. Operands are
 * described by code: matrices with any strides, or images under a kernel's window; this file does not know which.
 *
 * P, the product, has: acc, the type of sums; int m, n, k; a(m, k) and b(k, n), called only inside these bounds; put(m,
 * n, sum); and a_along_k, b_along_n: whether that index is contiguous in memory.
 * With few tiles and long sums, several blocks share a sum: each writes its part to the workspace, and the parts are
 * added in order. */
#ifndef DPT_BACKENDS_CUDA_PRODUCT_H
#define DPT_BACKENDS_CUDA_PRODUCT_H

#include "trainer/backends/cuda/cuda.h"

#define TILE 64
#define TILE_K 16
#define TILE_PITCH (TILE + 1) /* padded, so that a column touches every bank */
#define PRODUCT_BLOCKS 264    /* two per multiprocessor of the largest GPUs */
#define PRODUCT_PARTS_MAX 64

/* Row (of 64) and position (of 16) of element e of a 64 x 16 tile; a thread has elements thread, thread + 256, …
 * Consecutive elements are neighbours along k or along the row. */
template <bool along_k> __device__ inline int tile_row(int e)
{
	return along_k ? e / TILE_K : e % TILE;
}

template <bool along_k> __device__ inline int tile_place(int e)
{
	return along_k ? e % TILE_K : e / TILE;
}

/* Position of a tile; k_end: end of the block's part of the sum. */
struct product_tile {
	int row, column, k, k_end;
};

/* Loads one tile of each operand to shared memory; zeros outside the bounds. */
template <class P>
__device__ inline void product_load(const P &p, const struct product_tile &t, typename P::acc *a, typename P::acc *b)
{
	for (int e = (int)threadIdx.x; e < TILE * TILE_K; e += BLOCK_THREADS) {
		const int ar = tile_row<P::a_along_k>(e), ak = tile_place<P::a_along_k>(e);
		const int br = tile_row<!P::b_along_n>(e), bk = tile_place<!P::b_along_n>(e);

		a[ak * TILE_PITCH + ar] =
			inside(t.row + ar < p.m && t.k + ak < t.k_end) ? p.a(t.row + ar, t.k + ak) : 0;
		b[bk * TILE_PITCH + br] =
			inside(t.column + br < p.n && t.k + bk < t.k_end) ? p.b(t.k + bk, t.column + br) : 0;
	}
}

/* Each of 256 threads sums 4 x 4 elements, 16 apart. */
template <class P>
__device__ inline void product_add(typename P::acc (&sum)[4][4], const typename P::acc *a, const typename P::acc *b)
{
	const int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;

	for (int k = 0; k < TILE_K; k++) {
		typename P::acc u[4], v[4];

		for (int i = 0; i < 4; i++) {
			u[i] = a[k * TILE_PITCH + y + 16 * i];
			v[i] = b[k * TILE_PITCH + x + 16 * i];
		}
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++)
				sum[i][j] += u[i] * v[j];
	}
}

/* Computes part blockIdx.z of the sums, k_each long. parts: NULL if there is one part. */
template <class P> __global__ void product_kernel(P p, int k_each, typename P::acc *parts)
{
	using A = typename P::acc;
	SHARED(A, a, TILE_K * TILE_PITCH);
	SHARED(A, b, TILE_K * TILE_PITCH);
	const int row = (int)blockIdx.y * TILE, column = (int)blockIdx.x * TILE;
	const int begin = (int)blockIdx.z * k_each, end = p.k - begin < k_each ? p.k : begin + k_each;
	A sum[4][4] = {};

	for (int k = begin; k < end; k += TILE_K) {
		product_load(p, { row, column, k, end }, a, b);
		__syncthreads();
		product_add<P>(sum, a, b);
		__syncthreads();
	}
	for (int i = 0; i < 16; i++) {
		const int m = row + (int)threadIdx.x / 16 + 16 * (i / 4);
		const int n = column + (int)threadIdx.x % 16 + 16 * (i % 4);

		if (!inside(m < p.m && n < p.n))
			continue;
		if (parts)
			parts[((int64_t)blockIdx.z * p.m + m) * p.n + n] = sum[i / 4][i % 4];
		else
			p.put(m, n, sum[i / 4][i % 4]);
	}
}

template <class P> __global__ void product_parts(P p, int n_parts, const typename P::acc *parts)
{
	const int64_t count = (int64_t)p.m * p.n, stride = (int64_t)gridDim.x * blockDim.x;

	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
		typename P::acc sum = 0;

		for (int k = 0; k < n_parts; k++)
			sum += parts[k * count + i];
		p.put((int)(i / p.n), (int)(i % p.n), sum);
	}
}

/* Number of parts of the sums: depends only on the sizes. */
static inline int product_parts_of(int64_t m, int64_t n, int64_t k)
{
	const int64_t tiles = ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
	const int64_t most = k / (8 * TILE_K) < PRODUCT_PARTS_MAX ? k / (8 * TILE_K) : PRODUCT_PARTS_MAX;
	const int64_t wanted = tiles ? PRODUCT_BLOCKS / tiles : 1;

	return (int)(wanted < 1 || most < 1 ? 1 : wanted < most ? wanted : most);
}

/* Workspace bytes of product_run for sums of type acc. */
static inline size_t product_workspace(int64_t m, int64_t n, int64_t k, size_t acc_bytes)
{
	const int parts = product_parts_of(m, n, k);

	return parts > 1 ? (size_t)parts * (size_t)m * (size_t)n * acc_bytes : 0;
}

static inline int product_check(const struct node *n, int64_t rows, int64_t columns, int64_t k, struct err *err)
{
	if (rows <= INT32_MAX && columns <= INT32_MAX && k <= INT32_MAX && (rows + TILE - 1) / TILE <= 65535)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "cuda: %s: matrix product of %lld x %lld x %lld is too large", n->name,
		       (long long)rows, (long long)columns, (long long)k);
}

/* workspace: product_workspace bytes. Empty sums are 0. */
template <class P> static inline void product_run(const struct kernel_args *a, const P &p, void *workspace)
{
	using A = typename P::acc;
	const int parts = product_parts_of(p.m, p.n, p.k);
	const int each = ((p.k + parts - 1) / parts + TILE_K - 1) / TILE_K * TILE_K;
	const dim3 grid(cuda_blocks(p.n, TILE), cuda_blocks(p.m, TILE), (unsigned)parts);
	const unsigned blocks = cuda_blocks((int64_t)p.m * p.n, BLOCK_THREADS);
	A *room = parts > 1 ? static_cast<A *>(workspace) : nullptr;

	if (!p.m || !p.n)
		return;
	launch(a, grid, BLOCK_THREADS, product_kernel<P>, p, each, room);
	if (parts > 1)
		launch(a, dim3(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX), BLOCK_THREADS, product_parts<P>, p,
		       parts, static_cast<const A *>(room));
}

#endif
