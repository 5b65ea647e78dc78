/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm_cuda.cu: layer normalisation fused with the residual sum. Rows of common length are read once and kept in
 * registers by one warp. The gradient kernel has one thread per vector of columns, which also sums the gradients of
 * gain and bias over the block's rows. Longer rows have a block each, and are read from memory once and from the cache
 * afterwards. */
#include "trainer/backends/cuda/columns.h"

extern "C" {
#include "trainer/ops/layernorm/layernorm.h"
}

inline namespace layernorm_kernels {

constexpr int row_threads = 128;  /* per row that is not kept in registers */
constexpr int kept_rows = 4;	  /* rows per block, one warp each */
constexpr int kept_elements = 32; /* most elements per lane */

template <typename T> struct layernorm_operands {
	const T *x, *delta; /* delta, sum: may be NULL */
	const acc_t<T> *gamma, *beta; /* beta: may be NULL */
	T *y, *sum;
	acc_t<T> *stats;
	int64_t rows;
	int c;
	struct layernorm_attr attr;
};

/* A thread's elements of x + delta: W of every lanes * W. kept: in registers. */
template <int W, bool kept, typename T> struct row_part {
	static constexpr int pieces = kept ? kept_elements / W : 1;
	const T *x, *delta;
	int c, lane, lanes;
	acc_t<T> v[pieces][W];

	__device__ void read(int i, acc_t<T> (&to)[W]) const
	{
		acc_t<T> more[W] = {};

		load(to, x + i);
		if (delta)
			load(more, delta + i);
		for (int k = 0; k < W; k++)
			to[k] += more[k];
	}

	__device__ bool has(int i) const
	{
		return inside(i < c);
	}

	__device__ void keep()
	{
		for (int p = 0; kept && p < pieces; p++)
			if (has((lane + p * lanes) * W))
				read((lane + p * lanes) * W, v[p]);
	}

	/* Calls f(i, v) for each group of elements; i is the first index. */
	template <class F> __device__ void over(const F &f)
	{
		if constexpr (kept) {
			for (int p = 0; p < pieces; p++)
				if (has((lane + p * lanes) * W))
					f((lane + p * lanes) * W, v[p]);
		} else {
			for (int i = lane * W; i < c; i += lanes * W) {
				read(i, v[0]);
				f(i, v[0]);
			}
		}
	}

	__device__ acc_t<T> sum(acc_t<T> of_thread) const
	{
		return kept ? warp_sum(of_thread) : block_sum(of_thread);
	}
};

/* One warp per row if it is kept in registers, else one block per row. */
template <int W, bool kept, typename T> __global__ void layernorm_forward_kernel(layernorm_operands<T> f)
{
	using A = acc_t<T>;
	const int lanes = kept ? WARP : (int)blockDim.x, lane = (int)threadIdx.x % lanes;
	const int64_t row = kept ? (int64_t)blockIdx.x * kept_rows + (int)threadIdx.x / WARP : blockIdx.x;
	const int64_t at = row * f.c;
	row_part<W, kept, T> part = { f.x + at, f.delta ? f.delta + at : nullptr, f.c, lane, lanes, {} };
	A total = 0, squares = 0, mean, rstd;

	if (kept && !inside(row < f.rows))
		return;
	part.keep();
	part.over([&](int, const A(&v)[W]) {
		for (int k = 0; k < W; k++)
			total += v[k];
	});
	mean = f.attr.rms ? 0 : part.sum(total) / (A)f.c;
	part.over([&](int, const A(&v)[W]) {
		for (int k = 0; k < W; k++)
			squares += (v[k] - mean) * (v[k] - mean);
	});
	rstd = 1 / sqrt(part.sum(squares) / (A)f.c + (A)f.attr.eps);
	part.over([&](int i, const A(&v)[W]) {
		A y[W], gamma[W], beta[W] = {};

		load(gamma, f.gamma + i);
		if (f.beta)
			load(beta, f.beta + i);
		for (int k = 0; k < W; k++)
			y[k] = (v[k] - mean) * rstd * (gamma[k] + (A)f.attr.shift) + beta[k];
		if (f.sum)
			store(f.sum + at + i, v);
		store(f.y + at + i, y);
	});
	if (lane == 0) {
		f.stats[2 * row] = mean;
		f.stats[2 * row + 1] = rstd;
	}
}

template <int W, typename T> void launch_layernorm(const struct kernel_args *a, const layernorm_operands<T> &f)
{
	if (f.c <= WARP * kept_elements)
		launch(a, dim3(cuda_blocks(f.rows, kept_rows)), kept_rows * WARP, layernorm_forward_kernel<W, true, T>,
		       f);
	else
		launch(a, dim3((unsigned)f.rows), row_threads, layernorm_forward_kernel<W, false, T>, f);
}

void run_layernorm_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = layernorm_rows(n->in[0], n->in[2]), c = n->in[2]->shape.dim[0];

	if (!rows)
		return;
	BY_TYPE(n->in[0]->dtype, T,
		const layernorm_operands<T> f = { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<acc_t<T>>(a, 2),
						  cuda_in<acc_t<T>>(a, 3), cuda_out<T>(a, 0), cuda_out<T>(a, 2),
						  cuda_out<acc_t<T>>(a, 1), rows, (int)c,
						  *static_cast<const struct layernorm_attr *>(n->attr) };

		if (c % vector_width<T> == 0 && cuda_aligned(n, a)) launch_layernorm<vector_width<T>>(a, f);
		else launch_layernorm<1>(a, f));
}

constexpr int part_threads = 256; /* most threads of a block that has one per vector of a row */
constexpr int parts_most = 512;
constexpr int part_rows = 32;	/* rows per part, before more parts are used */
constexpr int rows_ahead = 2;	/* rows that a thread reads at once */
constexpr int rows_folded = 16; /* rows summed in acc before they are added to the f64 sum */

template <typename T> struct layernorm_grad_operands {
	const T *dy, *s, *skip; /* skip: may be NULL */
	const acc_t<T> *stats, *gamma;
	T *ds;
	int64_t rows;
	int c;
	struct layernorm_attr attr;
	int64_t rows_each; /* rows per part */
	double *parts;	   /* [parts][2][c]: dgamma and dbeta per part; may be NULL */
};

/* Sums N values over the block; every thread gets the results. */
template <int N, typename A> __device__ void block_sums(A (&v)[N])
{
	SHARED(A, of_warp, N * WARP);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;

	for (int k = 0; k < N; k++)
		v[k] = warp_sum(v[k]);
	__syncthreads(); /* the previous call may still be reading of_warp */
	for (int k = 0; k < N && lane == 0; k++)
		of_warp[k * WARP + warp] = v[k];
	__syncthreads();
	for (int k = 0; k < N; k++)
		v[k] = 0;
	for (int w = 0; w < warps; w++)
		for (int k = 0; k < N; k++)
			v[k] += of_warp[k * WARP + w];
}

/* A thread's columns of consecutive rows; 0 beyond the end. */
template <int W, typename T> struct rows_part {
	using A = acc_t<T>;
	A d[rows_ahead][W], h[rows_ahead][W], rstd[rows_ahead]; /* d: dy, then dy gamma */
	pack<T, W> past[rows_ahead];
	bool there[rows_ahead];

	__device__ rows_part(const layernorm_grad_operands<T> &f, int64_t first, int64_t end, int at)
	    : d(), h(), rstd(), past()
	{
		A mean[rows_ahead] = {};

		for (int k = 0; k < rows_ahead; k++) {
			const int64_t r = first + k;

			there[k] = inside(at < f.c && r < end);
			if (!there[k])
				continue;
			load(d[k], f.dy + r * f.c + at);
			load(h[k], f.s + r * f.c + at);
			if (f.skip)
				past[k] = *reinterpret_cast<const pack<T, W> *>(f.skip + r * f.c + at);
			mean[k] = f.stats[2 * r];
			rstd[k] = f.stats[2 * r + 1];
		}
		for (int k = 0; k < rows_ahead; k++)
			for (int w = 0; w < W; w++)
				h[k][w] = (h[k][w] - mean[k]) * rstd[k];
	}

	__device__ void add_gains(A (&gains)[2 * W]) const
	{
		for (int k = 0; k < rows_ahead; k++)
			for (int w = 0; w < W; w++) {
				gains[w] += d[k][w] * h[k][w];
				gains[W + w] += d[k][w];
			}
	}

	/* With h the normalised row and d = dy gamma: ds = skip + rstd (d - mean(d) - h mean(d h)). */
	__device__ void put(const layernorm_grad_operands<T> &f, int64_t first, int at, const A (&gamma)[W])
	{
		A sums[2 * rows_ahead] = {};

		for (int k = 0; k < rows_ahead; k++)
			for (int w = 0; w < W; w++) {
				d[k][w] *= gamma[w] + (A)f.attr.shift;
				sums[2 * k] += d[k][w];
				sums[2 * k + 1] += d[k][w] * h[k][w];
			}
		block_sums(sums);
		for (int k = 0; k < rows_ahead; k++) {
			const A of_d = f.attr.rms ? 0 : sums[2 * k] / (A)f.c, of_dh = sums[2 * k + 1] / (A)f.c;

			if (!there[k])
				continue;
			for (int w = 0; w < W; w++)
				d[k][w] = rstd[k] * (d[k][w] - of_d - h[k][w] * of_dh) + widen(past[k].v[w]);
			store(f.ds + (first + k) * f.c + at, d[k]);
		}
	}
};

/* One block per part of the rows, one thread per W columns. The f64 sums are in shared memory to save registers. */
template <int W, typename T>
__global__ void __launch_bounds__(part_threads, 2) layernorm_grad_part_kernel(layernorm_grad_operands<T> f)
{
	using A = acc_t<T>;
	SHARED(double, total, 2 * W * part_threads);
	const int at = (int)threadIdx.x * W;
	const int64_t begin = blockIdx.x * f.rows_each;
	const int64_t end = begin + f.rows_each < f.rows ? begin + f.rows_each : f.rows;
	const bool mine = inside(at < f.c);
	A gamma[W] = {};

	if (mine)
		load(gamma, f.gamma + at);
	for (int i = 0; i < 2 * W; i++)
		total[i * part_threads + (int)threadIdx.x] = 0;
	for (int64_t from = begin; from < end; from += rows_folded) {
		const int64_t to = from + rows_folded < end ? from + rows_folded : end;
		A gains[2 * W] = {};

		for (int64_t r = from; r < to; r += rows_ahead) {
			rows_part<W, T> part(f, r, end, at);

			part.add_gains(gains);
			part.put(f, r, at, gamma);
		}
		for (int i = 0; i < 2 * W; i++)
			total[i * part_threads + (int)threadIdx.x] += (double)gains[i];
	}
	if (f.parts && mine)
		for (int i = 0; i < 2 * W; i++)
			f.parts[((int64_t)blockIdx.x * 2 + i / W) * f.c + at + i % W] =
				total[i * part_threads + (int)threadIdx.x];
}

/* One block per row. */
template <int W, typename T> __global__ void layernorm_grad_row_kernel(layernorm_grad_operands<T> f)
{
	using A = acc_t<T>;
	const int64_t at = (int64_t)blockIdx.x * f.c;
	const A mean = f.stats[2 * blockIdx.x], rstd = f.stats[2 * blockIdx.x + 1];
	A sum_d = 0, sum_dh = 0;

	for (int i = (int)threadIdx.x * W; i < f.c; i += (int)blockDim.x * W) {
		A d[W], s[W], gamma[W];

		load(d, f.dy + at + i);
		load(s, f.s + at + i);
		load(gamma, f.gamma + i);
		for (int k = 0; k < W; k++) {
			d[k] *= gamma[k] + (A)f.attr.shift;
			sum_d += d[k];
			sum_dh += d[k] * (s[k] - mean) * rstd;
		}
	}
	sum_d = f.attr.rms ? 0 : block_sum(sum_d) / (A)f.c;
	sum_dh = block_sum(sum_dh) / (A)f.c;
	for (int i = (int)threadIdx.x * W; i < f.c; i += (int)blockDim.x * W) {
		A d[W], s[W], gamma[W], past[W] = {};

		load(d, f.dy + at + i);
		load(s, f.s + at + i);
		load(gamma, f.gamma + i);
		if (f.skip)
			load(past, f.skip + at + i);
		for (int k = 0; k < W; k++)
			d[k] = past[k] + rstd * (d[k] * (gamma[k] + (A)f.attr.shift) - sum_d -
						 (s[k] - mean) * rstd * sum_dh);
		store(f.ds + at + i, d);
	}
}

template <typename T> struct gain_sums {
	static constexpr int sums = 2, width = vector_width<T>, ahead = 4, numbers = 0;
	using acc = acc_t<T>;
	const T *dy, *s;
	const acc *stats;
	int64_t c;
	acc *dgamma, *dbeta;

	template <int W> struct elements {
		bits<T, W> dy, s;
		acc mean, rstd;
	};

	template <int W> __device__ elements<W> read(int64_t r, int64_t at) const
	{
		return { fetch<W>(dy + r * c + at), fetch<W>(s + r * c + at), stats[2 * r], stats[2 * r + 1] };
	}

	template <int W>
	__device__ void row(int64_t, int64_t, const elements<W> &in, const acc (&)[1][W], acc (&v)[2][W]) const
	{
		acc d[W], u[W];

		decompress(d, in.dy);
		decompress(u, in.s);
		for (int w = 0; w < W; w++) {
			v[0][w] += d[w] * (u[w] - in.mean) * in.rstd;
			v[1][w] += d[w];
		}
	}

	__device__ void done(int64_t at, const double *sum) const
	{
		dgamma[at] = (acc)sum[0];
		if (dbeta)
			dbeta[at] = (acc)sum[1];
	}
};

/* Sums of dgamma and dbeta over the parts. */
template <typename A> struct part_sums {
	static constexpr int sums = 2, width = 2, ahead = 4, numbers = 0;
	using acc = double;
	const double *parts;
	int64_t c;
	A *dgamma, *dbeta;

	template <int W> struct elements {
		bits<double, W> of[2];
	};

	template <int W> __device__ elements<W> read(int64_t r, int64_t at) const
	{
		return { { fetch<W>(parts + 2 * r * c + at), fetch<W>(parts + (2 * r + 1) * c + at) } };
	}

	template <int W>
	__device__ void row(int64_t, int64_t, const elements<W> &in, const double (&)[1][W], double (&v)[2][W]) const
	{
		for (int k = 0; k < 2; k++) {
			double sum[W];

			decompress(sum, in.of[k]);
			for (int w = 0; w < W; w++)
				v[k][w] += sum[w];
		}
	}

	__device__ void done(int64_t at, const double *sum) const
	{
		dgamma[at] = (A)sum[0];
		if (dbeta)
			dbeta[at] = (A)sum[1];
	}
};

int64_t count_layernorm_parts(int64_t rows)
{
	const int64_t parts = (rows + part_rows - 1) / part_rows;

	return parts < parts_most ? parts : parts_most;
}

size_t count_part_bytes(int64_t rows, int64_t c)
{
	return (size_t)(count_layernorm_parts(rows) * 2 * c) * sizeof(double);
}

/* Workspace: sums per part, then space for columns.h, which adds the parts or, for long rows, computes the sums. */
int prepare_layernorm_grad_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const struct tensor *x = n->in[1];
	const int64_t rows = layernorm_rows(x, n->in[3]), c = n->in[3]->shape.dim[0];
	const size_t of_rows = columns_workspace(x->dtype, rows, c, 2);
	const size_t of_parts = columns_workspace(DTYPE_F64, count_layernorm_parts(rows), c, 2);

	n->workspace_bytes = n->out[1] ? count_part_bytes(rows, c) + (of_rows > of_parts ? of_rows : of_parts) : 0;
	*ret_state = n;
	return 0;
}

/* The space for columns.h, after the sums per part. */
void *find_columns_workspace(const struct kernel_args *a, int64_t rows, int64_t c)
{
	return static_cast<char *>(a->workspace) + count_part_bytes(rows, c);
}

/* For rows that fit one block: dgamma and dbeta are summed in the same pass. */
template <int W, typename T>
void launch_grad_parts(const struct kernel_args *a, layernorm_grad_operands<T> f, int threads)
{
	using A = acc_t<T>;
	const int64_t parts = count_layernorm_parts(f.rows), each = parts ? (f.rows + parts - 1) / parts : 1;
	const part_sums<A> sums = { static_cast<double *>(a->workspace), f.c, cuda_out<A>(a, 1), cuda_out<A>(a, 2) };
	const unsigned blocks = cuda_blocks(f.rows, each);

	f.rows_each = each;
	f.parts = sums.dgamma ? static_cast<double *>(a->workspace) : nullptr;
	if (blocks)
		launch(a, dim3(blocks), threads, layernorm_grad_part_kernel<W, T>, f);
	if (sums.dgamma)
		columns_run(a, sums, { blocks, f.c, true }, find_columns_workspace(a, f.rows, f.c));
}

/* ds may overwrite dy: either the thread that reads a vector of dy for dgamma also writes it, or dgamma is computed
 * first. */
template <int W, typename T>
void launch_layernorm_grad(const struct kernel_args *a, const layernorm_grad_operands<T> &f, bool wide)
{
	using A = acc_t<T>;
	const int64_t threads = (int64_t)cuda_blocks(f.c, W * WARP) * WARP;
	const gain_sums<T> sums = { f.dy, f.s, f.stats, f.c, cuda_out<A>(a, 1), cuda_out<A>(a, 2) };

	if (threads <= part_threads) {
		launch_grad_parts<W>(a, f, (int)threads);
		return;
	}
	if (sums.dgamma)
		columns_run(a, sums, { f.rows, f.c, wide }, find_columns_workspace(a, f.rows, f.c));
	if (f.rows)
		launch(a, dim3((unsigned)f.rows), row_threads, layernorm_grad_row_kernel<W, T>, f);
}

void run_layernorm_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = layernorm_rows(n->in[1], n->in[3]), c = n->in[3]->shape.dim[0];
	const bool wide = cuda_aligned(n, a);

	BY_TYPE(n->in[1]->dtype, T,
		const layernorm_grad_operands<T> f = { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 4),
						       cuda_in<acc_t<T>>(a, 2), cuda_in<acc_t<T>>(a, 3),
						       cuda_out<T>(a, 0), rows, (int)c,
						       *static_cast<const struct layernorm_attr *>(n->attr), 0,
						       nullptr };

		if (wide && c % vector_width<T> == 0) launch_layernorm_grad<vector_width<T>>(a, f, wide);
		else launch_layernorm_grad<1>(a, f, wide));
}

} // namespace layernorm_kernels

CUDA_KERNEL(layernorm, cuda_prepare, run_layernorm_cuda);
CUDA_KERNEL(layernorm_grad, prepare_layernorm_grad_cuda, run_layernorm_grad_cuda);
