/* SPDX-License-Identifier: Apache-2.0 */
/* tiled_cuda.cu: causal attention in f32 by tiles, with a running maximum (Dao et al. 2022), in IEEE arithmetic: tensor
 * cores would round the operands. A block has a tile of rows. A thread has a grid of elements of each product and sums
 * it from 16-byte pieces of both operands: eight threads down, `across` threads along. Each sum is computed by one
 * thread along its tiles in order. The backward pass therefore recomputes scores twice, and no atomics are needed.
 *
 * Tiles in shared memory have no padding; the 16-byte pieces of row r are permuted by the last bits of r. Neither eight
 * rows at one piece nor eight pieces of one row share a bank. Columns of heads shorter than `wide`, and rows beyond the
 * sequence, are zero. */
#include "trainer/ops/attention/attention_cuda.h"

inline namespace tiled_kernels {

constexpr int down = 8, each = vector_width<float>;
constexpr float nearly_none = -1e30f;

/* Offset of a piece of a row in a tile of `wide` columns. */
template <int wide> __device__ int piece_at(int row, int piece)
{
	constexpr int mixed = (wide / each < 8 ? wide / each : 8) - 1;

	return row * wide + (piece ^ (row & mixed)) * each;
}

/* Row or column k of a thread's grid. */
template <int across> __device__ int row_of(int k)
{
	return (int)threadIdx.x / across + k * down;
}

template <int across> __device__ int column_of(int k)
{
	return (int)threadIdx.x % across + k * across;
}

/* Loads `count` rows of a head, `step` elements apart, and zeros after them. A thread issues all loads before the first
 * store. All threads call it. */
template <int wide, int rows, int across>
__device__ void stage_head_rows(float *to, const float *from, int64_t step, int count, int d)
{
	constexpr int pieces = wide / each, together = down * across / pieces;
	const int first = (int)threadIdx.x / pieces, piece = (int)threadIdx.x % pieces;
	float p[rows / together][each] = {};

	for (int k = 0; k < rows / together; k++)
		if (inside(first + k * together < count && piece * each < d))
			load(p[k], from + (first + k * together) * step + piece * each);
	for (int k = 0; k < rows / together; k++)
		store(to + piece_at<wide>(first + k * together, piece), p[k]);
}

/* sums[i][j] += the dot product of row i of a and row j of b over all `wide` columns. */
template <int wide, int across, int m, int n>
__device__ void multiply(float (&sums)[m][n], const float *a, const float *b)
{
	float x[m][each], y[each];

	for (int k = 0; k < wide / each; k++) {
		for (int i = 0; i < m; i++)
			load(x[i], a + piece_at<wide>(row_of<across>(i), k));
		for (int j = 0; j < n; j++) {
			load(y, b + piece_at<wide>(column_of<across>(j), k));
			for (int e = 0; e < each; e++)
				for (int i = 0; i < m; i++)
					sums[i][j] += x[i][e] * y[e];
		}
	}
}

/* sums += a [rows][n] times b [n][wide]. A thread has the pieces of sums given by column_of: multiples of eight apart,
 * so their distance is the same in every row. Processes eight rows of b at a time, so that the permutation of their
 * pieces is known at compile time, unless that many sums would not be unrolled. */
template <int wide, int n, int across, int m, int c>
__device__ void multiply_rows(float (&sums)[m][c], const float *a, const float *b)
{
	constexpr int at_once = c > 8 ? each : 8;
	float x[m][each], y[each];

	for (int from = 0; from < n; from += at_once)
		for (int e = 0; e < at_once; e++) {
			const float *row = b + piece_at<wide>(from + e, column_of<across>(0));

			for (int i = 0; i < m && e % each == 0; i++)
				load(x[i], a + piece_at<n>(row_of<across>(i), (from + e) / each));
			for (int j = 0; j < c; j += each) {
				load(y, row + j * across);
				for (int v = 0; v < each; v++)
					for (int i = 0; i < m; i++)
						sums[i][j + v] += x[i][e % each] * y[v];
			}
		}
}

/* Stores scores in a tile of n columns. */
template <int across, int m, int n> __device__ void stage_scores(float *to, const float (&s)[m][n])
{
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			const int column = column_of<across>(j);

			to[piece_at<n * across>(row_of<across>(i), column / each) + column % each] = s[i][j];
		}
}

/* Sum over the threads that share a row. */
template <int across> __device__ float row_sum(float v)
{
	for (int lanes = across / 2; lanes > 0; lanes /= 2)
		v += __shfl_xor_sync(WHOLE_WARP, v, lanes);
	return v;
}

template <int across> __device__ float row_max(float v)
{
	for (int lanes = across / 2; lanes > 0; lanes /= 2)
		v = fmaxf(v, __shfl_xor_sync(WHOLE_WARP, v, lanes));
	return v;
}

/* Stores a block's rows, from position `first` of the sequence on, times `by`. */
template <int across, int m, int c>
__device__ void store_rows(const output_rows<float> &out, const float (&sums)[m][c], float by, int first,
			   const struct attention_sizes &z)
{
	for (int i = 0; i < m; i++)
		for (int j = 0; j < c; j += each) {
			const int row = first + row_of<across>(i), column = column_of<across>(j / each) * each;
			float of_piece[each];

			for (int v = 0; v < each; v++)
				of_piece[v] = sums[i][j + v] * by;
			if (inside(row < z.seq && column < z.d))
				store(out.to + row * out.step + column, of_piece);
		}
}

/* Dropout of a thread's probabilities: element [i][j] is kept if bit n i + j is set, and multiplied by `by`. */
struct kept_mask {
	uint32_t bits;
	float by;
};

/* Dropout of rows from s.i on and columns from `from` on. The mask is created for every tile, so that it uses no
 * registers without dropout. A separate loop, since arrays in registers cannot be indexed by a loop variable. */
template <bool by_key, int across, int m, int n>
__device__ struct kept_mask draw_kept(const struct attention_sizes &z, const struct spot &s, const step_page *page,
				      int from)
{
	const struct mask mask = make_attention_mask(z, s, page);
	struct kept_mask kept = { 0, (float)mask.draw.scale };

	for (int k = 0; k < m * n; k++) {
		const int mine = s.i + row_of<across>(k / n), other = from + column_of<across>(k % n);

		kept.bits |= (uint32_t)(by_key ? mask(other, mine) > 0 : mask(mine, other) > 0) << k;
	}
	return kept;
}

/* ---- forward ---- */

/* Queries per block and keys per step: 48 KB hold a tile of each and one of values. */
template <int wide> constexpr int tile = wide > 64 ? 32 : 64;

constexpr int forward_across = 16, forward_threads = down * forward_across;

/* A thread's state per row: largest score so far, its own part of the sum, and the first key that is seen. */
template <int m> struct softmax {
	float max[m], sum[m];
	int begin[m];
};

/* The first key that query i sees; 0 beyond the sequence. */
template <bool spans> __device__ int begin_of(const struct attention_sizes &z, const struct spot &s, int i)
{
	return spans && inside(i < z.seq) ? begin_at(z, s, i) : 0;
}

/* A tile's first query and first key, which is not after it. */
struct tile_spot {
	int i, from;
};

/* Turns scores into probabilities relative to the maximum so far, and rescales earlier sums. */
template <int across, bool spans, int m, int n, int c>
__device__ void update_softmax(softmax<m> &f, float (&s)[m][n], float (&out)[m][c], const struct tile_spot &t,
			       float scale)
{
	for (int i = 0; i < m; i++) {
		float next = f.max[i], shrink;

		for (int j = 0; j < n; j++) {
			const int row = row_of<across>(i), column = column_of<across>(j);
			const bool hidden = (t.from == t.i && column > row) || (spans && t.from + column < f.begin[i]);

			s[i][j] = hidden ? -INFINITY : s[i][j] * scale;
			next = fmaxf(next, s[i][j]);
		}
		next = row_max<across>(next);
		if (spans && next == -INFINITY)
			next = nearly_none; /* nothing is seen so far: -inf - -inf would be nan */
		shrink = expf(f.max[i] - next);
		f.max[i] = next;
		f.sum[i] *= shrink;
		for (int j = 0; j < n; j++) {
			s[i][j] = expf(s[i][j] - next);
			f.sum[i] += s[i][j];
		}
		for (int j = 0; j < c; j++)
			out[i][j] *= shrink;
	}
}

template <int m, int n> __device__ void apply_dropout(float (&p)[m][n], const struct kept_mask &kept)
{
	for (int k = 0; k < m * n; k++)
		p[k / n][k % n] *= kept.bits >> k & 1 ? kept.by : 0;
}

/* Divides the outputs by the sums; stores log-sum-exp per row. */
template <int across, int m, int c>
__device__ void finish_rows(const softmax<m> &f, float (&out)[m][c], float *lse, const struct spot &s,
			    const struct attention_sizes &z)
{
	for (int i = 0; i < m; i++) {
		const float sum = row_sum<across>(f.sum[i]);
		const int row = s.i + row_of<across>(i);

		for (int j = 0; j < c; j++)
			out[i][j] /= sum;
		if (threadIdx.x % across == 0 && inside(row < z.seq))
			lse[lse_at(z, s, row)] = f.max[i] + logf(sum);
	}
}

template <int wide, bool spans>
__global__ void __launch_bounds__(forward_threads, wide > 64 ? 3 : 4)
	tiled_forward_kernel(struct attention_sizes z, const step_page *page, const float *qkv, float *y, float *lse)
{
	constexpr int rows = tile<wide>, across = forward_across, m = rows / down;
	SHARED(float, queries, rows *wide);
	SHARED(float, keys, rows *wide);
	SHARED(float, values, rows *wide);
	float *const weights = keys; /* free once the scores are known */
	const struct spot s = find_tile_spot(z, rows, true);
	const float *of_head = qkv + qkv_at(z, s, 0);
	const int64_t step = 3 * z.c;
	const float scale = 1 / sqrtf((float)z.d);
	softmax<m> f = {};
	float out[m][wide / across] = {};

	for (int i = 0; i < m; i++) {
		f.max[i] = -INFINITY;
		f.begin[i] = begin_of<spans>(z, s, s.i + row_of<across>(i));
	}
	stage_head_rows<wide, rows, across>(queries, of_head + s.i * step, step, z.seq - s.i, z.d);
	for (int from = begin_of<spans>(z, s, s.i) / rows * rows; from <= s.i; from += rows) {
		float p[m][rows / across] = {};

		__syncthreads();
		stage_head_rows<wide, rows, across>(keys, of_head + z.c + from * step, step, z.seq - from, z.d);
		stage_head_rows<wide, rows, across>(values, of_head + 2 * z.c + from * step, step, z.seq - from, z.d);
		__syncthreads();
		multiply<wide, across>(p, queries, keys);
		update_softmax<across, spans>(f, p, out, { s.i, from }, scale);
		if (z.drops)
			apply_dropout(p, draw_kept<false, across, m, rows / across>(z, s, page, from));
		__syncthreads();
		stage_scores<across>(weights, p);
		__syncthreads();
		multiply_rows<wide, rows, across>(out, weights, values);
	}
	finish_rows<across>(f, out, lse, s, z);
	store_rows<across>({ y + y_at(z, s, 0), z.c }, out, 1, s.i, z);
}

/* ---- backward ---- */

/* Rows per block, and rows of the other side per step, limited by shared memory. */
constexpr int own_rows = 32, backward_across = 8, backward_threads = down * backward_across;
template <int wide> constexpr int other_rows = wide > 64 ? 8 : 32;

/* Log-sum-exp and dy . y of one query, and the first key that it sees, counted from the block's first row. */
struct query_statistics {
	float lse, inner;
	int begin;
};

/* Loads the statistics of n queries from `from` on. Beyond the sequence it repeats the last query's; results from these
 * are discarded. */
template <int n, bool spans>
__device__ void stage_statistics(struct query_statistics *to, const struct attention_sizes &z, const struct spot &s,
				 const gradient<float> &b, int from)
{
	const int i = from + (int)threadIdx.x;
	const int64_t at = lse_at(z, s, i < z.seq ? i : z.seq - 1);

	if (threadIdx.x < n)
		to[threadIdx.x] = { b.lse[at], b.inner[at], begin_of<spans>(z, s, i) - s.i };
}

/* A tile of scores: offset of column 0 from row 0, columns before the end of the sequence, factor of the products. */
struct tiled_scores {
	int offset, left;
	float scale;
};

/* From the products s = q . k and dp = dy . v: s becomes p m, dp becomes ds = p (m dp - dy . y). Rows are queries and
 * columns keys; by_key the other way round. `of`: the queries' statistics. */
template <bool by_key, bool spans, int across, int m, int n>
__device__ void differentiate_softmax(float (&s)[m][n], float (&dp)[m][n], const struct query_statistics *of,
				      const struct kept_mask &kept, const struct tiled_scores &t)
{
	for (int k = 0; k < m; k++)
		for (int j = 0; j < n; j++) {
			const int row = row_of<across>(k), column = column_of<across>(j);
			const struct query_statistics q = of[by_key ? column : row];
			const int key = by_key ? row : column + t.offset, query = by_key ? column + t.offset : row;
			const bool seen = key <= query && (!by_key || column < t.left) && (!spans || key >= q.begin);
			const float p = seen ? expf(s[k][j] * t.scale - q.lse) : 0;
			const float by = kept.bits >> (n * k + j) & 1 ? kept.by : 0;

			s[k][j] = p * by;
			dp[k][j] = p * (by * dp[k][j] - q.inner);
		}
}

template <int wide, int rows, int across>
__device__ void stage_side(float *first, float *second, const side<float> &of, int from,
			   const struct attention_sizes &z)
{
	stage_head_rows<wide, rows, across>(first, of.first + from * of.first_step, of.first_step, z.seq - from, z.d);
	stage_head_rows<wide, rows, across>(second, of.second + from * of.second_step, of.second_step, z.seq - from,
					    z.d);
}

/* Computes dq of 32 queries, or dk and dv of 32 keys. */
template <int wide, bool by_key, bool spans>
__global__ void __launch_bounds__(backward_threads, wide > 64 ? 4 : 6)
	tiled_backward_kernel(struct attention_sizes z, const step_page *page, gradient<float> b)
{
	constexpr int n = other_rows<wide>, across = backward_across, m = own_rows / down, c = wide / across;
	SHARED(float, first, own_rows *wide);
	SHARED(float, second, own_rows *wide);
	SHARED(float, other_first, n *wide);
	SHARED(float, other_second, n *wide);
	SHARED(float, weights, own_rows *n);
	SHARED(struct query_statistics, of, by_key ? n : own_rows);
	const struct spot s = find_tile_spot(z, own_rows, !by_key);
	const float root = 1 / sqrtf((float)z.d);
	const int end = by_key || z.seq < s.i + own_rows ? z.seq : s.i + own_rows;
	float d_first[m][c] = {}, d_second[m][c] = {};
	side<float> mine, other;

	pick_gradient_sides<by_key>(z, s, b, mine, other);
	stage_side<wide, own_rows, across>(first, second, mine, s.i, z);
	if (!by_key)
		stage_statistics<own_rows, spans>(of, z, s, b, s.i);
	for (int from = by_key ? s.i : begin_of<spans>(z, s, s.i) / n * n; from < end; from += n) {
		float p[m][n / across] = {}, ds[m][n / across] = {};
		struct kept_mask kept = { ~0u, 1 };

		if (by_key && begin_of<spans>(z, s, from) >= s.i + own_rows)
			break; /* nor do later queries see these keys */
		__syncthreads();
		stage_side<wide, n, across>(other_first, other_second, other, from, z);
		if (by_key)
			stage_statistics<n, spans>(of, z, s, b, from);
		__syncthreads();
		multiply<wide, across>(p, first, other_first);
		multiply<wide, across>(ds, second, other_second);
		if (z.drops)
			kept = draw_kept<by_key, across, m, n / across>(z, s, page, from);
		differentiate_softmax<by_key, spans, across>(p, ds, of, kept, { from - s.i, z.seq - from, root });
		stage_scores<across>(weights, ds);
		__syncthreads();
		multiply_rows<wide, n, across>(d_first, weights, other_first);
		if (by_key) {
			__syncthreads();
			stage_scores<across>(weights, p);
			__syncthreads();
			multiply_rows<wide, n, across>(d_second, weights, other_second);
		}
	}
	store_rows<across>({ b.dqkv + qkv_at(z, s, 0) + (by_key ? z.c : 0), 3 * z.c }, d_first, root, s.i, z);
	if (by_key)
		store_rows<across>({ b.dqkv + qkv_at(z, s, 0) + 2 * z.c, 3 * z.c }, d_second, 1, s.i, z);
}

template <int wide, bool spans>
void launch_tiled_forward(const struct attention_sizes &z, const struct kernel_args *a)
{
	launch(a, make_tile_grid(z, tile<wide>), forward_threads, tiled_forward_kernel<wide, spans>, z, a->page,
	       cuda_in<float>(a, 0), cuda_out<float>(a, 0), cuda_out<float>(a, 1));
}

template <int wide, bool spans>
void launch_tiled_backward(const struct attention_sizes &z, const struct kernel_args *a)
{
	const gradient<float> b = make_attention_gradient<float>(a);
	const dim3 grid = make_tile_grid(z, own_rows);

	launch_inner_products<each, wide / each>(z, a, b);
	launch(a, grid, backward_threads, tiled_backward_kernel<wide, false, spans>, z, a->page, b);
	launch(a, grid, backward_threads, tiled_backward_kernel<wide, true, spans>, z, a->page, b);
}

} // namespace tiled_kernels

bool tiled_takes(const struct attention_sizes &z, enum dtype type)
{
	return type == DTYPE_F32 && z.d % each == 0 && z.d <= 128 && z.cap <= 0;
}

void tiled_forward(const struct attention_sizes &z, const struct kernel_args *a)
{
	if (z.spans)
		z.d <= 64 ? launch_tiled_forward<64, true>(z, a) : launch_tiled_forward<128, true>(z, a);
	else
		z.d <= 64 ? launch_tiled_forward<64, false>(z, a) : launch_tiled_forward<128, false>(z, a);
}

void tiled_backward(const struct attention_sizes &z, const struct kernel_args *a)
{
	if (z.spans)
		z.d <= 64 ? launch_tiled_backward<64, true>(z, a) : launch_tiled_backward<128, true>(z, a);
	else
		z.d <= 64 ? launch_tiled_backward<64, false>(z, a) : launch_tiled_backward<128, false>(z, a);
}
