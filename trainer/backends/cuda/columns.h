/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h: column-wise processing of matrices: sums over the rows of each column, in f64 and a fixed order (blocks
 * sum parts of the rows, a second launch sums the parts), and loops over all elements with coefficients per column. A
 * thread loads several rows ahead and never divides by the length of a row.
 *
 * F, the operation, has: acc; width; ahead, the number of rows loaded ahead, a divisor of COLUMNS_ROWS; read<W>(r, c),
 * which loads row r of columns c to c + W; numbers, the count of coefficients per column (0: none), and column(c,
 * number), which computes them, once per block.
 * For loops: row<W>(r, c, in, number), which processes these elements; in: the loaded data, number[which][column].
 * For sums: sums, the count per column; row<W>(r, c, in, number, v), which adds to v[sum][column]; and done(c, sum),
 * called once per column with the complete sums. */
#ifndef DPT_BACKENDS_CUDA_COLUMNS_H
#define DPT_BACKENDS_CUDA_COLUMNS_H

#include "trainer/backends/cuda/cuda.h"

#define COLUMNS_BLOCKS 512 /* fills the largest GPUs twice, with two blocks per multiprocessor */
#define COLUMNS_ROWS 8	   /* rows per thread before another block is used */
#define COLUMNS_FOLD 16	   /* rows summed in acc before they are added to the f64 sum */
#define COLUMNS_KERNEL __global__ void __launch_bounds__(BLOCK_THREADS, 2)

struct columns_shape {
	int64_t rows, columns;
	int across;	   /* threads of a block along a row; the others are in further rows */
	int64_t rows_each; /* rows per block */
	int parts;
};

/* least: rows per thread and step. */
static inline struct columns_shape columns_shape_of(int64_t rows, int64_t columns, int width, int least)
{
	struct columns_shape s = { rows, columns, 1, 0, 0 };
	int64_t at_a_time, turns, parts;

	while (s.across < WARP && (int64_t)s.across * width < columns)
		s.across *= 2;
	at_a_time = (int64_t)(BLOCK_THREADS / s.across) * least;
	turns = rows ? cuda_blocks(rows, at_a_time) : 1;
	parts = COLUMNS_BLOCKS / cuda_blocks(columns, (int64_t)s.across * width);
	s.rows_each = at_a_time * cuda_blocks(turns, parts ? parts : 1);
	s.parts = rows ? (int)cuda_blocks(rows, s.rows_each) : 1;
	return s;
}

static inline dim3 columns_grid(const struct columns_shape *s, int width)
{
	return dim3(cuda_blocks(s->columns, (int64_t)s->across * width), (unsigned)s->parts);
}

/* Workspace of sums over a matrix of this type. */
static inline size_t columns_workspace(enum dtype dtype, int64_t rows, int64_t columns, int sums)
{
	const int wide = columns_shape_of(rows, columns, 16 / (int)dtype_bytes(dtype), COLUMNS_ROWS).parts;
	const int narrow = columns_shape_of(rows, columns, 1, COLUMNS_ROWS).parts;

	return (size_t)(wide > narrow ? wide : narrow) * (size_t)columns * (size_t)sums * sizeof(double);
}

/* A thread's remaining work: columns c to c + W of rows r, r + step, … below r + left. A block's rows fit an int, since
 * large matrices have more parts. */
struct columns_place {
	int64_t c, r;
	int left, step;

	__device__ void advance(int rows)
	{
		r += rows * step;
		left -= rows * step;
	}
};

template <int W> __device__ inline struct columns_place columns_place_of(const struct columns_shape &s)
{
	const int x = (int)threadIdx.x % s.across, y = (int)threadIdx.x / s.across;
	const int64_t begin = blockIdx.y * s.rows_each, rows = s.rows - begin;

	return { ((int64_t)blockIdx.x * s.across + x) * W, begin + y,
		 (int)(rows < s.rows_each ? rows : s.rows_each) - y, (int)blockDim.x / s.across };
}

/* The coefficients of a thread's columns; no storage if the operation has no coefficients. All threads of the block
 * call it. */
template <int W, class F> struct columns_numbers {
	typename F::acc of[F::numbers > 0 ? F::numbers : 1][W];

	__device__ columns_numbers(const F &f, const struct columns_shape &s)
	{
		if constexpr (F::numbers > 0)
			work_out(f, s);
	}

	__device__ void work_out(const F &f, const struct columns_shape &s)
	{
		SHARED(typename F::acc, shared, F::numbers * W * WARP);
		const int64_t begin = (int64_t)blockIdx.x * s.across * W;
		const int x = (int)threadIdx.x % s.across;

		for (int i = (int)threadIdx.x; i < s.across * W && begin + i < s.columns; i += (int)blockDim.x) {
			typename F::acc number[F::numbers];

			f.column(begin + i, number);
			for (int k = 0; k < F::numbers; k++)
				shared[(k * W + i % W) * WARP + i / W] = number[k];
		}
		__syncthreads();
		for (int k = 0; k < F::numbers; k++)
			for (int w = 0; w < W; w++)
				of[k][w] = shared[(k * W + w) * WARP + x];
	}
};

/* Calls row(r, in) for the next F::ahead rows that exist; at least one does. */
template <int W, class F, class G>
__device__ inline void columns_turn(const F &f, const struct columns_place &p, const G &row)
{
	decltype(f.template read<W>(p.r, p.c)) in[F::ahead];

	for (int i = 0; i < F::ahead; i++)
		in[i] = f.template read<W>(p.r + (i * p.step < p.left ? i * p.step : 0), p.c);
	for (int i = 0; i < F::ahead; i++)
		if (inside(i * p.step < p.left))
			row(p.r + i * p.step, in[i]);
}

/* ---- loops ---- */

template <int W, class F> COLUMNS_KERNEL columns_loop(F f, struct columns_shape s)
{
	struct columns_place p = columns_place_of<W>(s);
	const columns_numbers<W, F> number(f, s);

	if (!inside(p.c < s.columns))
		return;
	for (; p.left > 0; p.advance(F::ahead))
		columns_turn<W>(f, p, [&](int64_t r, const auto &in) { f.template row<W>(r, p.c, in, number.of); });
}

/* A matrix; wide: rows can be accessed F::width elements at a time. */
struct columns_matrix {
	int64_t rows, columns;
	bool wide;
};

/* Runs f over all elements. */
template <class F>
static inline void columns_each(const struct kernel_args *a, const F &f, const struct columns_matrix &m)
{
	const int width = m.wide && m.columns % F::width == 0 ? F::width : 1;
	const struct columns_shape s = columns_shape_of(m.rows, m.columns, width, F::ahead);

	if (!m.rows)
		return;
	if (width > 1)
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_loop<F::width, F>, f, s);
	else
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_loop<1, F>, f, s);
}

/* ---- sums ---- */

/* Adds the sums of one thread to total[(sum * W + column) * BLOCK_THREADS]. */
template <int W, class F>
__device__ inline void columns_walk(const F &f, const columns_numbers<W, F> &number, struct columns_place p,
				    double *total)
{
	while (p.left > 0) {
		typename F::acc v[F::sums][W] = {};

		for (int i = 0; i < COLUMNS_FOLD && p.left > 0; i += F::ahead, p.advance(F::ahead))
			columns_turn<W>(
				f, p, [&](int64_t r, const auto &in) { f.template row<W>(r, p.c, in, number.of, v); });
		for (int k = 0; k < F::sums; k++)
			for (int w = 0; w < W; w++)
				total[(k * W + w) * BLOCK_THREADS] += (double)v[k][w];
	}
}

/* parts: [sum][column][part]. */
template <int W, class F> COLUMNS_KERNEL columns_parts(F f, struct columns_shape s, double *parts)
{
	SHARED(double, total, F::sums *W *BLOCK_THREADS);
	const struct columns_place p = columns_place_of<W>(s);
	const columns_numbers<W, F> number(f, s);

	for (int i = 0; i < F::sums * W; i++)
		total[i * BLOCK_THREADS + (int)threadIdx.x] = 0;
	if (inside(p.c < s.columns))
		columns_walk(f, number, p, total + threadIdx.x);
	__syncthreads();
	for (int i = (int)threadIdx.x; i < F::sums * W * s.across; i += BLOCK_THREADS) {
		const int of = i / s.across, x = i % s.across; /* of: sum * W + column */
		const int64_t c = ((int64_t)blockIdx.x * s.across + x) * W + of % W;
		double sum = 0;

		if (!inside(c < s.columns))
			continue;
		for (int y = 0; y < p.step; y++)
			sum += total[of * BLOCK_THREADS + y * s.across + x];
		parts[(of / W * s.columns + c) * s.parts + blockIdx.y] = sum;
	}
}

/* One warp per column. */
template <class F> __global__ void columns_done(F f, struct columns_shape s, const double *parts)
{
	const int64_t c = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
	const int lane = (int)threadIdx.x % WARP;
	double sum[F::sums] = {};

	if (!inside(c < s.columns))
		return;
	for (int i = lane; i < s.parts; i += WARP)
		for (int k = 0; k < F::sums; k++)
			sum[k] += parts[(k * s.columns + c) * s.parts + i];
	for (int k = 0; k < F::sums; k++)
		sum[k] = warp_sum(sum[k]);
	if (lane == 0)
		f.done(c, sum);
}

/* Computes the sums of all columns. workspace: columns_workspace bytes. */
template <class F>
static inline void columns_run(const struct kernel_args *a, const F &f, const struct columns_matrix &m, void *workspace)
{
	const int width = m.wide && m.columns % F::width == 0 ? F::width : 1;
	const struct columns_shape s = columns_shape_of(m.rows, m.columns, width, COLUMNS_ROWS);
	double *parts = static_cast<double *>(workspace);

	if (width > 1)
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_parts<F::width, F>, f, s, parts);
	else
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_parts<1, F>, f, s, parts);
	launch(a, dim3(cuda_blocks(m.columns * WARP, BLOCK_THREADS)), BLOCK_THREADS, columns_done<F>, f, s,
	       static_cast<const double *>(parts));
}

#endif
