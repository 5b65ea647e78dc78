/* columns.h: sums over the rows of a matrix, for each of its columns, in f64 and a fixed order: blocks sum a part of
 * the rows, a second launch the parts.
 *
 * F, what is summed, has: sums, how many numbers of each column; acc; width; row<W>(r, c, v), which adds what row r
 * brings to columns c to c + W, to v[sum][column]; and done(c, sum), called once a column with the whole sums. */
#ifndef DPT_BACKENDS_CUDA_COLUMNS_H
#define DPT_BACKENDS_CUDA_COLUMNS_H

#include "trainer/backends/cuda/cuda.h"

#define COLUMNS_PARTS_MAX 256
#define COLUMNS_ROWS 64	 /* that a thread sums before it is worth another block */
#define COLUMNS_FOLD 16 /* rows summed in acc before they join the f64 sum */

struct columns_shape {
	int64_t rows, columns;
	int across;	   /* threads of a block beside each other along a row; the others stand below each other */
	int64_t rows_each; /* of a block */
	int parts;
};

static inline struct columns_shape columns_shape_of(int64_t rows, int64_t columns, int width)
{
	struct columns_shape s = { rows, columns, 1, 0, 1 };
	int64_t below, parts;

	while (s.across < WARP && (int64_t)s.across * width < columns)
		s.across *= 2;
	below = BLOCK_THREADS / s.across;
	parts = (rows + below * COLUMNS_ROWS - 1) / (below * COLUMNS_ROWS);
	s.parts = (int)(parts < 1 ? 1 : parts < COLUMNS_PARTS_MAX ? parts : COLUMNS_PARTS_MAX);
	s.rows_each = (rows + s.parts - 1) / s.parts;
	return s;
}

static inline size_t columns_workspace(int64_t columns, int sums)
{
	return (size_t)COLUMNS_PARTS_MAX * (size_t)columns * (size_t)sums * sizeof(double);
}

/* The sums of one thread: rows first, first + step, … before end. */
template <int W, class F>
__device__ inline void columns_walk(const F &f, int64_t first, int64_t end, int step, int64_t c,
				    double (&total)[F::sums][W])
{
	while (first < end) {
		typename F::acc v[F::sums][W] = {};

		for (int i = 0; i < COLUMNS_FOLD && first < end; i++, first += step)
			f.template row<W>(first, c, v);
		for (int k = 0; k < F::sums; k++)
			for (int w = 0; w < W; w++)
				total[k][w] += (double)v[k][w];
	}
}

template <int W, class F> __global__ void columns_parts(F f, struct columns_shape s, double *parts)
{
	SHARED(double, shared, BLOCK_THREADS * W);
	const int x = (int)threadIdx.x % s.across, y = (int)threadIdx.x / s.across, below = (int)blockDim.x / s.across;
	const int64_t c = ((int64_t)blockIdx.x * s.across + x) * W, begin = blockIdx.y * s.rows_each;
	const int64_t end = begin + s.rows_each < s.rows ? begin + s.rows_each : s.rows;
	double total[F::sums][W] = {};

	if (inside(c < s.columns))
		columns_walk<W>(f, begin + y, end, below, c, total);
	for (int k = 0; k < F::sums; k++) {
		__syncthreads();
		for (int w = 0; w < W; w++)
			shared[w * BLOCK_THREADS + (int)threadIdx.x] = total[k][w];
		__syncthreads();
		for (int w = 0; w < W && y == 0 && c < s.columns; w++) {
			double sum = 0;

			for (int i = 0; i < below; i++)
				sum += shared[w * BLOCK_THREADS + i * s.across + x];
			parts[((int64_t)blockIdx.y * F::sums + k) * s.columns + c + w] = sum;
		}
	}
}

template <class F> __global__ void columns_done(F f, struct columns_shape s, const double *parts)
{
	const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
	double sum[F::sums] = {};

	if (!inside(c < s.columns))
		return;
	for (int i = 0; i < s.parts; i++)
		for (int k = 0; k < F::sums; k++)
			sum[k] += parts[((int64_t)i * F::sums + k) * s.columns + c];
	f.done(c, sum);
}

/* wide: whether rows can be read F::width elements at a time. */
template <class F>
static inline void columns_run(const struct kernel_args *a, const F &f, int64_t rows, int64_t columns, bool wide,
			       void *workspace)
{
	const int width = wide && columns % F::width == 0 ? F::width : 1;
	const struct columns_shape s = columns_shape_of(rows, columns, width);
	const dim3 grid(cuda_blocks(columns, (int64_t)s.across * width), (unsigned)s.parts);
	double *parts = static_cast<double *>(workspace);

	if (width > 1)
		launch(a, grid, BLOCK_THREADS, columns_parts<F::width, F>, f, s, parts);
	else
		launch(a, grid, BLOCK_THREADS, columns_parts<1, F>, f, s, parts);
	launch(a, dim3(cuda_blocks(columns, WARP)), WARP, columns_done<F>, f, s, static_cast<const double *>(parts));
}

#endif
