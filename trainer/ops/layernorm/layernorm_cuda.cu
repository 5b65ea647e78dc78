/* layernorm_cuda.cu: layer normalisation joined with the residual sum. Rows of usual length are read once: a warp keeps
 * one in registers; the gradient has a thread for each vector of columns, which sums the gains' gradients over a
 * block's rows as they pass. Longer rows have a block each, read from memory once and from the cache after that. */
#include "trainer/backends/cuda/columns.h"

extern "C" {
#include "trainer/ops/layernorm/layernorm.h"
}

namespace {

constexpr int row_threads = 128;  /* of a row that is not kept */
constexpr int kept_rows = 4;	  /* of a block, a warp each */
constexpr int kept_elements = 32; /* of a lane, at most */

template <typename T> struct forward {
	const T *x, *delta; /* delta, sum: NULL without */
	const acc_t<T> *gamma, *beta;
	T *y, *sum;
	acc_t<T> *stats;
	int64_t rows;
	int c;
};

/* A thread's elements of x + delta: W every lanes * W. */
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

	/* f(i, v) for the elements from i on. */
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

/* A warp a row where it is kept, else a block. */
template <int W, bool kept, typename T> __global__ void forward_rows(forward<T> f)
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
	mean = part.sum(total) / (A)f.c;
	part.over([&](int, const A(&v)[W]) {
		for (int k = 0; k < W; k++)
			squares += (v[k] - mean) * (v[k] - mean);
	});
	rstd = 1 / sqrt(part.sum(squares) / (A)f.c + (A)LAYERNORM_EPS);
	part.over([&](int i, const A(&v)[W]) {
		A y[W], gamma[W], beta[W];

		load(gamma, f.gamma + i);
		load(beta, f.beta + i);
		for (int k = 0; k < W; k++)
			y[k] = (v[k] - mean) * rstd * gamma[k] + beta[k];
		if (f.sum)
			store(f.sum + at + i, v);
		store(f.y + at + i, y);
	});
	if (lane == 0) {
		f.stats[2 * row] = mean;
		f.stats[2 * row + 1] = rstd;
	}
}

template <int W, typename T> void forward_launch(const struct kernel_args *a, const forward<T> &f)
{
	if (f.c <= WARP * kept_elements)
		launch(a, dim3(cuda_blocks(f.rows, kept_rows)), kept_rows * WARP, forward_rows<W, true, T>, f);
	else
		launch(a, dim3((unsigned)f.rows), row_threads, forward_rows<W, false, T>, f);
}

int layernorm_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1];

	if (!rows)
		return 0;
	BY_TYPE(n->in[0]->dtype, T,
		const forward<T> f = { cuda_in<T>(a, 0),	cuda_in<T>(a, 1),  cuda_in<acc_t<T>>(a, 2),
				       cuda_in<acc_t<T>>(a, 3), cuda_out<T>(a, 0), cuda_out<T>(a, 2),
				       cuda_out<acc_t<T>>(a, 1), rows, (int)c };

		if (c % vector_width<T> == 0 && cuda_aligned(n, a))
			forward_launch<vector_width<T>>(a, f);
		else
			forward_launch<1>(a, f));
	return cuda_launched(n, err);
}

constexpr int part_threads = 256; /* of a block that has a thread for each vector of a row, at most */
constexpr int parts_most = 512;
constexpr int part_rows = 32;	/* of a part, before there is another one */
constexpr int rows_ahead = 2;	/* that a thread reads at once */
constexpr int rows_folded = 16; /* summed in acc before they join the f64 sum */

template <typename T> struct backward {
	const T *dy, *s, *skip; /* skip: or NULL */
	const acc_t<T> *stats, *gamma;
	T *ds;
	int64_t rows;
	int c;
	int64_t rows_each; /* of a part */
	double *parts;	   /* [parts][2][c]: dgamma and dbeta of each; or NULL */
};

/* Sums over the block, in every thread. */
template <int N, typename A> __device__ void block_sums(A (&v)[N])
{
	SHARED(A, of_warp, N * WARP);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;

	for (int k = 0; k < N; k++)
		v[k] = warp_sum(v[k]);
	__syncthreads(); /* of_warp may still be read by the call before */
	for (int k = 0; k < N && lane == 0; k++)
		of_warp[k * WARP + warp] = v[k];
	__syncthreads();
	for (int k = 0; k < N; k++)
		v[k] = 0;
	for (int w = 0; w < warps; w++)
		for (int k = 0; k < N; k++)
			v[k] += of_warp[k * WARP + w];
}

/* A thread's columns of neighbouring rows; 0 where there are none. */
template <int W, typename T> struct rows_part {
	using A = acc_t<T>;
	A d[rows_ahead][W], h[rows_ahead][W], rstd[rows_ahead]; /* d: dy, then dy gamma */
	pack<T, W> past[rows_ahead];
	bool there[rows_ahead];

	__device__ rows_part(const backward<T> &f, int64_t first, int64_t end, int at) : d(), h(), rstd(), past()
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
	__device__ void put(const backward<T> &f, int64_t first, int at, const A (&gamma)[W])
	{
		A sums[2 * rows_ahead] = {};

		for (int k = 0; k < rows_ahead; k++)
			for (int w = 0; w < W; w++) {
				d[k][w] *= gamma[w];
				sums[2 * k] += d[k][w];
				sums[2 * k + 1] += d[k][w] * h[k][w];
			}
		block_sums(sums);
		for (int k = 0; k < rows_ahead; k++) {
			const A of_d = sums[2 * k] / (A)f.c, of_dh = sums[2 * k + 1] / (A)f.c;

			if (!there[k])
				continue;
			for (int w = 0; w < W; w++)
				d[k][w] = rstd[k] * (d[k][w] - of_d - h[k][w] * of_dh) +
					  widen(past[k].v[w]);
			store(f.ds + (first + k) * f.c + at, d[k]);
		}
	}
};

/* A block a part of the rows, with a thread for each W columns. Its f64 sums lie in shared memory for want of
 * registers. */
template <int W, typename T> __global__ void __launch_bounds__(part_threads, 2) backward_parts(backward<T> f)
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

/* A block a row. */
template <int W, typename T> __global__ void backward_rows(backward<T> f)
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
			d[k] *= gamma[k];
			sum_d += d[k];
			sum_dh += d[k] * (s[k] - mean) * rstd;
		}
	}
	sum_d = block_sum(sum_d) / (A)f.c;
	sum_dh = block_sum(sum_dh) / (A)f.c;
	for (int i = (int)threadIdx.x * W; i < f.c; i += (int)blockDim.x * W) {
		A d[W], s[W], gamma[W], past[W] = {};

		load(d, f.dy + at + i);
		load(s, f.s + at + i);
		load(gamma, f.gamma + i);
		if (f.skip)
			load(past, f.skip + at + i);
		for (int k = 0; k < W; k++)
			d[k] = rstd * (d[k] * gamma[k] - sum_d - (s[k] - mean) * rstd * sum_dh) + past[k];
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
		dbeta[at] = (acc)sum[1];
	}
};

/* Of what parts have. */
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
		dbeta[at] = (A)sum[1];
	}
};

int64_t parts_of(int64_t rows)
{
	const int64_t parts = (rows + part_rows - 1) / part_rows;

	return parts < parts_most ? parts : parts_most;
}

size_t parts_room(int64_t rows, int64_t c)
{
	return (size_t)(parts_of(rows) * 2 * c) * sizeof(double);
}

/* Workspace: gains of parts, which columns.h sums or, where rows are long, makes. */
int layernorm_grad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const struct tensor *x = n->in[1];
	const int64_t rows = x->shape.dim[0], c = x->shape.dim[1];
	const size_t of_rows = columns_workspace(x->dtype, rows, c, 2);
	const size_t of_parts = columns_workspace(DTYPE_F64, parts_of(rows), c, 2);

	n->workspace_bytes = n->out[1] ? parts_room(rows, c) + (of_rows > of_parts ? of_rows : of_parts) : 0;
	*ret_state = n;
	return 0;
}

/* For columns.h, behind what parts have. */
void *columns_room(const struct kernel_args *a, int64_t rows, int64_t c)
{
	return static_cast<char *>(a->workspace) + parts_room(rows, c);
}

/* Rows that a block has threads for: the gains are summed as they pass. */
template <int W, typename T> void backward_parted(const struct kernel_args *a, backward<T> f, int threads)
{
	using A = acc_t<T>;
	const int64_t parts = parts_of(f.rows), each = parts ? (f.rows + parts - 1) / parts : 1;
	const part_sums<A> sums = { static_cast<double *>(a->workspace), f.c, cuda_out<A>(a, 1), cuda_out<A>(a, 2) };
	const unsigned blocks = cuda_blocks(f.rows, each);

	f.rows_each = each;
	f.parts = sums.dgamma ? static_cast<double *>(a->workspace) : nullptr;
	if (blocks)
		launch(a, dim3(blocks), threads, backward_parts<W, T>, f);
	if (sums.dgamma)
		columns_run(a, sums, blocks, f.c, true, columns_room(a, f.rows, f.c));
}

/* ds may lie over dy: who reads a vector of dy for the gains writes it, or the gains come first. */
template <int W, typename T> void backward_launch(const struct kernel_args *a, const backward<T> &f, bool wide)
{
	using A = acc_t<T>;
	const int64_t threads = (int64_t)cuda_blocks(f.c, W * WARP) * WARP;
	const gain_sums<T> sums = { f.dy, f.s, f.stats, f.c, cuda_out<A>(a, 1), cuda_out<A>(a, 2) };

	if (threads <= part_threads) {
		backward_parted<W>(a, f, (int)threads);
		return;
	}
	if (sums.dgamma)
		columns_run(a, sums, f.rows, f.c, wide, columns_room(a, f.rows, f.c));
	if (f.rows)
		launch(a, dim3((unsigned)f.rows), row_threads, backward_rows<W, T>, f);
}

int layernorm_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = n->in[1]->shape.dim[0], c = n->in[1]->shape.dim[1];
	const bool wide = cuda_aligned(n, a);

	BY_TYPE(n->in[1]->dtype, T,
		const backward<T> f = { cuda_in<T>(a, 0),	 cuda_in<T>(a, 1),	  cuda_in<T>(a, 4),
					cuda_in<acc_t<T>>(a, 2), cuda_in<acc_t<T>>(a, 3), cuda_out<T>(a, 0), rows,
					(int)c,			 0,			  nullptr };

		if (wide && c % vector_width<T> == 0)
			backward_launch<vector_width<T>>(a, f, wide);
		else
			backward_launch<1>(a, f, wide));
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(layernorm, cuda_prepare, layernorm_run);
CUDA_KERNEL(layernorm_grad, layernorm_grad_prepare, layernorm_grad_run);
