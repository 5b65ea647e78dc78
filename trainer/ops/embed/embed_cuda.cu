/* SPDX-License-Identifier: Apache-2.0 */
/* embed_cuda.cu: the embedding, and its gradient without atomics. Positions of the batch are sorted by token, stably,
 * so that the positions of one token (a run) are in batch order. Each block adds the rows of an equal number of sorted
 * positions, however long runs are. A second launch adds parts of a run that extend into later blocks. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/embed/embed.h"
}

inline namespace embed_kernels {

constexpr int order_threads = 1024;
constexpr int order_ahead = 4; /* positions that a lane reads at once */
constexpr int part_places = 64;
constexpr int rows_ahead = 8; /* rows that a thread reads at once; divides part_places */

template <typename T, typename E> struct embed_lookup {
	static constexpr int width = vector_width<T> < vector_width<E> ? vector_width<T> : vector_width<E>;
	const int32_t *tokens;
	const E *wte, *wpe; /* wpe: may be NULL */
	T *x;
	int64_t c, positions;
	acc_t<T> scale;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t row = i / c, at = i % c;
		acc_t<T> v[W], p[W] = {};

		load(v, wte + tokens[row] * c + at);
		if (wpe)
			load(p, wpe + row % positions * c + at);
		for (int k = 0; k < W; k++)
			v[k] = v[k] * scale + p[k];
		store(x + i, v);
	}
};

double read_embed_scale(const struct node *n)
{
	return static_cast<const struct embed_attr *>(n->attr)->scale;
}

template <typename T, typename E> void launch_embed(const struct node *n, const struct kernel_args *a)
{
	const int64_t c = n->out[0]->shape.dim[1];

	cuda_each(n, a,
		  embed_lookup<T, E>{ cuda_in<int32_t>(a, 0), cuda_in<E>(a, 1), cuda_in<E>(a, 2), cuda_out<T>(a, 0), c,
				      n->in[0]->shape.dim[1], (acc_t<T>)read_embed_scale(n) },
		  { cuda_count(n->out[0]), c });
}

int prepare_embed_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	*ret_state = n;
	return !n->in[2] || n->in[1]->dtype == n->in[2]->dtype
		       ? 0
		       : err_set(err, ERR_UNSUPPORTED, "cuda: %s: wte and wpe must have one type", n->name);
}

void run_embed_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const bool same = n->in[1]->dtype == n->out[0]->dtype;

	BY_TYPE(n->out[0]->dtype, T, same ? launch_embed<T, T>(n, a) : launch_embed<T, acc_t<T>>(n, a));
}

/* Initialises table with more, or zeros. */
template <typename M> struct init_table {
	static constexpr int width = vector_width<M>;
	const M *more;
	M *table;

	template <int W> __device__ void at(int64_t i) const
	{
		M v[W] = {};

		if (more)
			load(v, more + i);
		store(table + i, v);
	}
};

struct alignas(8) place {
	int32_t token, row;
};

/* One pass of a stable radix sort, by the bits of tokens from `shift` on. */
struct order_pass {
	const int32_t *tokens;
	const place *from; /* NULL: batch order */
	place *to;
	int rows, shift, mask;

	__device__ place at(int i) const
	{
		return from ? from[i] : place{ tokens[i], i };
	}

	__device__ bool before(int32_t token, unsigned digit) const
	{
		return (unsigned)((token >> shift) & mask) < digit;
	}

	__device__ bool of(int32_t token, unsigned digit) const
	{
		return (unsigned)((token >> shift) & mask) == digit;
	}
};

/* Writes the positions with a digit in [begin, end) to o.to from `at` on. Called by a whole warp. */
__device__ void write_places(const order_pass &o, unsigned digit, int begin, int end, int at)
{
	const int lane = (int)threadIdx.x % WARP;
	const unsigned lower = (1u << lane) - 1;

	for (int from = begin + lane; from - lane < end; from += order_ahead * WARP) {
		place p[order_ahead];
		bool own[order_ahead];

		for (int k = 0; k < order_ahead; k++) {
			own[k] = inside(from + k * WARP < end);
			if (own[k])
				p[k] = o.at(from + k * WARP);
		}
		for (int k = 0; k < order_ahead; k++) {
			const bool writes = own[k] && o.of(p[k].token, digit);
			const unsigned lanes = __ballot_sync(WHOLE_WARP, writes);

			if (writes)
				o.to[at + __popc(lanes & lower)] = p[k];
			at += __popc(lanes);
		}
	}
}

/* Block d writes the positions with digit d after those of smaller digits, which it counts. Each warp handles one
 * range. */
__global__ void __launch_bounds__(order_threads) order_places(order_pass o)
{
	SHARED(int, of_warp, WARP);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int each = (o.rows + order_threads - 1) / order_threads * WARP, begin = warp * each;
	const int end = begin + each < o.rows ? begin + each : o.rows;
	int before = 0, own = 0, at;

	for (int i = begin + lane; i < end; i += WARP) {
		const int32_t token = o.at(i).token;

		before += o.before(token, blockIdx.x);
		own += o.of(token, blockIdx.x);
	}
	own = warp_sum(own);
	at = block_sum(before);
	if (lane == 0)
		of_warp[warp] = own;
	__syncthreads();
	for (int w = 0; w < warp; w++)
		at += of_warp[w];
	write_places(o, blockIdx.x, begin, end, at);
}

template <typename T> struct token_grads {
	const T *dx;
	const place *order;
	acc_t<T> *dwte;
	acc_t<T> *joins; /* [parts][c]: a part's share of a run that starts in an earlier part */
	int rows, c;
	acc_t<T> scale;

	/* Returns true if position i continues the run of the previous one. */
	__device__ bool follows(int i) const
	{
		return i > 0 && order[i].token == order[i - 1].token;
	}
};

/* Rows of consecutive sorted positions, in columns [at, at + W). */
template <int W, typename T> struct rows_read {
	pack<T, W> v[rows_ahead];
	int32_t token[rows_ahead];
	bool there[rows_ahead];

	__device__ rows_read(const token_grads<T> &a, int first, int at)
	{
		for (int k = 0; k < rows_ahead; k++) {
			there[k] = inside(first + k < a.rows);
			if (!there[k])
				continue;
			const place p = a.order[first + k];

			token[k] = p.token;
			v[k] = *reinterpret_cast<const pack<T, W> *>(a.dx + (int64_t)p.row * a.c + at);
		}
	}
};

/* A part's partial sum of a run. */
template <int W, typename T> struct run_sum {
	int32_t token;
	bool joins; /* the run starts in an earlier part */
	acc_t<T> sum[W];

	__device__ void put(const token_grads<T> &a, int at)
	{
		acc_t<T> *to = joins ? a.joins + (int64_t)blockIdx.x * a.c + at : a.dwte + (int64_t)token * a.c + at;
		acc_t<T> past[W] = {};

		if (!joins)
			load(past, to);
		for (int w = 0; w < W; w++)
			sum[w] = sum[w] * a.scale + past[w];
		store(to, sum);
	}
};

/* Block (p, y): adds the rows of part p, in columns from y * blockDim.x * W on. */
template <int W, typename T> __global__ void add_rows(token_grads<T> a)
{
	const int at = (int)(blockIdx.y * blockDim.x + threadIdx.x) * W, begin = (int)blockIdx.x * part_places;
	run_sum<W, T> run = { a.order[begin].token, a.follows(begin), {} };

	if (!inside(at < a.c))
		return;
	for (int i = begin; i < begin + part_places; i += rows_ahead) {
		const rows_read<W, T> r(a, i, at);

		for (int k = 0; k < rows_ahead; k++) {
			if (!r.there[k])
				continue;
			if (r.token[k] != run.token) {
				run.put(a, at);
				run = { r.token[k], false, {} };
			}
			for (int w = 0; w < W; w++)
				run.sum[w] += widen(r.v[k].v[w]);
		}
	}
	run.put(a, at);
}

/* Block (p - 1, y): if part p is the first continuation of a run, adds the partial sums of part p and later parts to
 * it. */
template <int W, typename T> __global__ void join_parts(token_grads<T> a)
{
	using M = acc_t<T>;
	const int at = (int)(blockIdx.y * blockDim.x + threadIdx.x) * W, first = (int)blockIdx.x + 1;
	const int parts = (a.rows + part_places - 1) / part_places;
	const int32_t token = a.order[first * part_places].token;
	M sum[W];

	if (!inside(at < a.c) || !a.follows(first * part_places) ||
	    (a.follows((first - 1) * part_places) && a.order[(first - 1) * part_places].token == token))
		return;
	load(sum, a.dwte + (int64_t)token * a.c + at);
	for (int p = first; p < parts && a.order[p * part_places].token == token; p += rows_ahead)
		for (int k = 0; k < rows_ahead; k++) {
			M v[W] = {};

			if (p + k < parts && a.order[(p + k) * part_places].token == token)
				load(v, a.joins + (int64_t)(p + k) * a.c + at);
			for (int w = 0; w < W; w++)
				sum[w] += v[w];
		}
	store(a.dwte + (int64_t)token * a.c + at, sum);
}

template <typename T> struct add_positions {
	static constexpr int width = vector_width<T>;
	const T *dx;
	acc_t<T> *dwpe;
	int64_t rows, c, positions;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t position = i / c;
		acc_t<T> sum[W] = {}, v[W];

		for (int64_t r = position; position < positions && r < rows; r += positions) {
			load(v, dx + (r - position) * c + i);
			for (int k = 0; k < W; k++)
				sum[k] += v[k];
		}
		store(dwpe + i, sum);
	}
};

int count_embed_parts(int64_t rows)
{
	return (int)cuda_blocks(rows, part_places);
}

/* Bytes of one list of positions, rounded so that data after it is aligned to 16 bytes. */
size_t count_list_bytes(int64_t rows)
{
	return (size_t)(rows + rows % 2) * sizeof(place);
}

/* Workspace: positions after the first pass, sorted positions, partial sums of continued runs. */
int prepare_embed_grad_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1];

	n->workspace_bytes =
		2 * count_list_bytes(rows) + (size_t)(count_embed_parts(rows) * c) * dtype_bytes(n->out[0]->dtype);
	*ret_state = n;
	return 0;
}

/* Sorts by the lower, then the upper half of the tokens' bits. Returns the sorted positions. */
const place *order_by_token(const struct kernel_args *a, int rows, int64_t vocab)
{
	place *half = static_cast<place *>(a->workspace), *whole = half + count_list_bytes(rows) / sizeof(place);
	const int32_t *tokens = cuda_in<int32_t>(a, 1);
	int bits = 0;

	while ((vocab - 1) >> 2 * bits)
		bits++;
	launch(a, dim3(1u << bits), order_threads, order_places,
	       order_pass{ tokens, nullptr, half, rows, 0, (1 << bits) - 1 });
	launch(a, dim3((unsigned)((vocab - 1) >> bits) + 1), order_threads, order_places,
	       order_pass{ tokens, half, whole, rows, bits, -1 });
	return whole;
}

template <int W, typename T> void launch_token_sums(const struct kernel_args *a, const token_grads<T> &f)
{
	const unsigned across = cuda_blocks(f.c, W), whole_warps = (across + WARP - 1) / WARP * WARP;
	const int threads = whole_warps < BLOCK_THREADS ? (int)whole_warps : BLOCK_THREADS;
	const dim3 grid((unsigned)count_embed_parts(f.rows), cuda_blocks(across, threads));

	launch(a, grid, threads, add_rows<W, T>, f);
	if (grid.x > 1)
		launch(a, dim3(grid.x - 1, grid.y), threads, join_parts<W, T>, f);
}

template <typename T> void launch_embed_grad(const struct node *n, const struct kernel_args *a)
{
	using M = acc_t<T>;
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], positions = n->in[1]->shape.dim[1];

	if (a->in[2] != a->out[0])
		cuda_each(n, a, init_table<M>{ cuda_in<M>(a, 2), cuda_out<M>(a, 0) }, { cuda_count(n->out[0]), 0 });
	if (rows) {
		const place *order = order_by_token(a, (int)rows, n->out[0]->shape.dim[0]);
		M *joins = reinterpret_cast<M *>(static_cast<char *>(a->workspace) + 2 * count_list_bytes(rows));
		const token_grads<T> f = { cuda_in<T>(a, 0), order, cuda_out<M>(a, 0), joins, (int)rows, (int)c,
					   (M)read_embed_scale(n) };

		if (c % vector_width<T> == 0 && cuda_aligned(n, a))
			launch_token_sums<vector_width<T>>(a, f);
		else
			launch_token_sums<1>(a, f);
	}
	if (n->out[1])
		cuda_each(n, a, add_positions<T>{ cuda_in<T>(a, 0), cuda_out<M>(a, 1), rows, c, positions },
			  { cuda_count(n->out[1]), c });
}

void run_embed_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_embed_grad<T>(n, a));
}

} // namespace embed_kernels

CUDA_KERNEL(embed, prepare_embed_cuda, run_embed_cuda);
CUDA_KERNEL(embed_grad, prepare_embed_grad_cuda, run_embed_grad_cuda);
