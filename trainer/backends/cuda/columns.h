/* columns.h: matrices whose columns stay with their threads: sums over the rows of each column, in f64 and a fixed
 * order (blocks sum a part of the rows, a second launch the parts), and loops over all elements with numbers that each
 * column has for its rows. A thread has loads of several rows under way and never divides by the length of a row.
 *
 * F, what is done, has: acc; width; ahead, of how many rows loads are under way, a divisor of COLUMNS_ROWS;
 * read<W>(r, c), what row r brings for columns c to c + W, as it lies in memory; numbers, how many each column has (0:
 * none), and column(c, number), which works them out, once a block.
 * For loops: row<W>(r, c, in, number), which does these elements; in: what was read, number[which][column].
 * For sums: sums, how many each column has; row<W>(r, c, in, number, v), which adds to v[sum][column]; and
 * done(c, sum), called once a column with the whole sums. */
#ifndef DPT_BACKENDS_CUDA_COLUMNS_H
#define DPT_BACKENDS_CUDA_COLUMNS_H

#include "trainer/backends/cuda/cuda.h"

#define COLUMNS_BLOCKS 512 /* twice over the largest GPUs, with two blocks on a multiprocessor */
#define COLUMNS_ROWS 8	   /* that a thread sums before it is worth another block */
#define COLUMNS_FOLD 16	   /* rows summed in acc before they join the f64 sum */
#define COLUMNS_KERNEL __global__ void __launch_bounds__(BLOCK_THREADS, 2)

struct columns_shape {
	int64_t rows, columns;
	int across;	   /* threads of a block beside each other along a row; the others stand below each other */
	int64_t rows_each; /* of a block */
	int parts;
};

/* least: rows that a thread takes at a time. */
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

/* Of sums over a matrix of that type. */
static inline size_t columns_workspace(enum dtype dtype, int64_t rows, int64_t columns, int sums)
{
	const int wide = columns_shape_of(rows, columns, 16 / (int)dtype_bytes(dtype), COLUMNS_ROWS).parts;
	const int narrow = columns_shape_of(rows, columns, 1, COLUMNS_ROWS).parts;

	return (size_t)(wide > narrow ? wide : narrow) * (size_t)columns * (size_t)sums * sizeof(double);
}

/* What a thread has before it: columns c to c + W of rows r, r + step, … before r + left. A block's rows are an int:
 * many more make more parts. */
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

/* The numbers of a thread's columns; without any, room for none. All threads of the block call it. */
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

/* row(r, in) for the next F::ahead rows, as far as there are; there is one. */
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
		columns_turn<W>(f, p, [&](int64_t r, const auto &in) {
			f.template row<W>(r, p.c, in, number.of);
		});
}

/* Runs f over all elements; wide: whether rows can be accessed F::width elements at a time. */
template <class F>
static inline void columns_each(const struct kernel_args *a, const F &f, int64_t rows, int64_t columns, bool wide)
{
	const int width = wide && columns % F::width == 0 ? F::width : 1;
	const struct columns_shape s = columns_shape_of(rows, columns, width, F::ahead);

	if (!rows)
		return;
	if (width > 1)
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_loop<F::width, F>, f, s);
	else
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_loop<1, F>, f, s);
}

/* ---- sums ---- */

/* The sums of one thread, added to total[(sum * W + column) * BLOCK_THREADS]. */
template <int W, class F>
__device__ inline void columns_walk(const F &f, const columns_numbers<W, F> &number, struct columns_place p,
				    double *total)
{
	while (p.left > 0) {
		typename F::acc v[F::sums][W] = {};

		for (int i = 0; i < COLUMNS_FOLD && p.left > 0; i += F::ahead, p.advance(F::ahead))
			columns_turn<W>(f, p, [&](int64_t r, const auto &in) {
				f.template row<W>(r, p.c, in, number.of, v);
			});
		for (int k = 0; k < F::sums; k++)
			for (int w = 0; w < W; w++)
				total[(k * W + w) * BLOCK_THREADS] += (double)v[k][w];
	}
}

/* parts: [sum][column][part]. */
template <int W, class F> COLUMNS_KERNEL columns_parts(F f, struct columns_shape s, double *parts)
{
	SHARED(double, total, F::sums * W * BLOCK_THREADS);
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

/* A warp a column. */
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

/* wide: whether rows can be read F::width elements at a time. */
template <class F>
static inline void columns_run(const struct kernel_args *a, const F &f, int64_t rows, int64_t columns, bool wide,
			       void *workspace)
{
	const int width = wide && columns % F::width == 0 ? F::width : 1;
	const struct columns_shape s = columns_shape_of(rows, columns, width, COLUMNS_ROWS);
	double *parts = static_cast<double *>(workspace);

	if (width > 1)
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_parts<F::width, F>, f, s, parts);
	else
		launch(a, columns_grid(&s, width), BLOCK_THREADS, columns_parts<1, F>, f, s, parts);
	launch(a, dim3(cuda_blocks(columns * WARP, BLOCK_THREADS)), BLOCK_THREADS, columns_done<F>, f, s,
	       static_cast<const double *>(parts));
}

#endif
