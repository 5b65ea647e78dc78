/* SPDX-License-Identifier: Apache-2.0 */
/* flash_cuda.cu: causal attention in 16 bits by tiles on tensor cores, with a running maximum (Dao et al. 2022, 2023).
 * A warp has 16 rows, a block 64: queries in the forward pass and for dq, keys for dk and dv. Each sum is computed by
 * one warp along its tiles in order. The backward pass therefore recomputes scores twice, and no atomics are needed.
 *
 * Rows of tiles in shared memory are padded by 8 elements, so that eight rows loaded together touch all banks once.
 * Columns of heads shorter than WIDE, and rows beyond the sequence, are zero. */
#include "trainer/ops/attention/attention_cuda.h"

inline namespace flash_kernels {

constexpr int warps = 4, rows_each = 16, tile_rows = warps * rows_each;
constexpr float log2_of_e = 1.4426950408889634f, nearly_none = -1e30f;

/* Row pitch of a tile of `wide` columns in shared memory. */
template <int wide> constexpr int pitch = wide + 8;

/* Loads `count` rows of a head, `step` elements apart, and zeros after them. All threads call it. */
template <int wide, int rows, typename T>
__device__ void stage_head_rows(T *to, const T *from, int64_t step, int count, int d)
{
	constexpr int each = vector_width<T>;

	for (int e = (int)threadIdx.x; e < rows * wide / each; e += warps * WARP) {
		const int row = e / (wide / each), column = e % (wide / each) * each;
		pack<T, each> p = {};

		if (inside(row < count && column < d))
			p = *reinterpret_cast<const pack<T, each> *>(from + row * step + column);
		*reinterpret_cast<pack<T, each> *>(to + row * pitch<wide> + column) = p;
	}
}

/* Loads A's fragment: 16 rows from `row` on, columns k to k + 16. */
template <int wide, typename T> __device__ void load_a(uint32_t (&to)[4], const T *tile, int row, int k)
{
	const int lane = (int)threadIdx.x % WARP;

	load_matrices<false>(to, tile + (row + lane % 16) * pitch<wide> + k + lane / 16 * 8);
}

/* Loads B's fragments for 16 columns, which are rows of the tile from n on; registers 0 and 1 are those of the first
 * 8. */
template <int wide, typename T> __device__ void load_b(uint32_t (&to)[4], const T *tile, int k, int n)
{
	const int lane = (int)threadIdx.x % WARP, matrix = lane / 8;

	load_matrices<false>(to, tile + (n + lane % 8 + matrix / 2 * 8) * pitch<wide> + k + matrix % 2 * 8);
}

/* The same, where rows of B are rows of the tile. */
template <int wide, typename T> __device__ void load_b_transposed(uint32_t (&to)[4], const T *tile, int k, int n)
{
	const int lane = (int)threadIdx.x % WARP, matrix = lane / 8;

	load_matrices<true>(to, tile + (k + lane % 8 + matrix % 2 * 8) * pitch<wide> + n + matrix / 2 * 8);
}

/* Converts columns from 16 k on of a result to A's fragment. */
template <typename T, int n> __device__ void convert_to_a(uint32_t (&to)[4], const float (&c)[n][4], int k)
{
	to[0] = pair_of<T>(c[2 * k][0], c[2 * k][1]);
	to[1] = pair_of<T>(c[2 * k][2], c[2 * k][3]);
	to[2] = pair_of<T>(c[2 * k + 1][0], c[2 * k + 1][1]);
	to[3] = pair_of<T>(c[2 * k + 1][2], c[2 * k + 1][3]);
}

/* sums[16][8 n] += A, in registers, times columns of the tile in the layout of load_b. */
template <int wide, int n, typename T>
__device__ void multiply(float (&sums)[n][4], const uint32_t (&a)[4], const T *tile, int k)
{
	uint32_t b[4];

	for (int j = 0; j < n / 2; j++) {
		load_b<wide>(b, tile, k, 16 * j);
		multiply_add<T>(sums[2 * j], a, b[0], b[1]);
		multiply_add<T>(sums[2 * j + 1], a, b[2], b[3]);
	}
}

/* sums[16][wide] += C[16][8 n] times the tile's 8 n rows. */
template <int wide, int n, typename T>
__device__ void multiply_rows(float (&sums)[wide / 8][4], const float (&c)[n][4], const T *tile)
{
	uint32_t a[4], b[4];

	for (int k = 0; k < n / 2; k++) {
		convert_to_a<T>(a, c, k);
		for (int j = 0; j < wide / 16; j++) {
			load_b_transposed<wide>(b, tile, 16 * k, 16 * j);
			multiply_add<T>(sums[2 * j], a, b[0], b[1]);
			multiply_add<T>(sums[2 * j + 1], a, b[2], b[3]);
		}
	}
}

/* Elements 0 and 1 of a lane's four are in its first row, 2 and 3 in the row 8 below. */
__device__ int lane_row(int e)
{
	return (int)threadIdx.x % WARP / 4 + e / 2 * 8;
}

__device__ int lane_column(int e)
{
	return (int)threadIdx.x % 4 * 2 + e % 2;
}

/* Sum over the four lanes that share a row. */
__device__ float row_sum(float v)
{
	v += __shfl_xor_sync(WHOLE_WARP, v, 1);
	return v + __shfl_xor_sync(WHOLE_WARP, v, 2);
}

__device__ float row_max(float v)
{
	v = fmaxf(v, __shfl_xor_sync(WHOLE_WARP, v, 1));
	return fmaxf(v, __shfl_xor_sync(WHOLE_WARP, v, 2));
}

/* Stores a warp's rows, from position `first` of the sequence on. by: factor of each of the lane's two rows. */
template <int wide, typename T>
__device__ void store_rows(const output_rows<T> &out, const float (&sums)[wide / 8][4], const float (&by)[2], int first,
			   const struct attention_sizes &z)
{
	for (int j = 0; j < wide / 8; j++)
		for (int e = 0; e < 4; e += 2) {
			const int row = first + lane_row(e), column = 8 * j + lane_column(e);
			const float pair[2] = { sums[j][e] * by[e / 2], sums[j][e + 1] * by[e / 2] };

			if (inside(row < z.seq && column < z.d))
				store<2>(out.to + row * out.step + column, pair);
		}
}

/* Bit 4 j + e: dropout keeps the lane's e-th element of column block j of a warp's 16 x 8 n probabilities. A separate
 * loop, since arrays in registers cannot be indexed by a loop variable. */
template <bool by_key, int n> __device__ uint32_t draw_kept_bits(const struct mask &m, int row, int from)
{
	uint32_t bits = 0;

	for (int k = 0; k < 4 * n; k++) {
		const int mine = row + lane_row(k % 4), other = from + k / 4 * 8 + lane_column(k % 4);

		bits |= (uint32_t)(by_key ? m(other, mine) > 0 : m(mine, other) > 0) << k;
	}
	return bits;
}

/* ---- forward ---- */

/* A warp's tile of scores: its first row and column, and the factor of the products. */
struct score_tile {
	int row, from;
	float scale;
};

/* The first key that query i sees; 0 beyond the sequence. */
template <bool spans> __device__ int begin_of(const struct attention_sizes &z, const struct spot &s, int i)
{
	return spans && inside(i < z.seq) ? begin_at(z, s, i) : 0;
}

/* A lane's state for its two rows: largest score so far, in powers of two, its own part of the sum, and the first key
 * that is seen. */
struct softmax {
	float max[2], sum[2];
	int begin[2];
};

/* Turns scores of a warp's 16 rows into probabilities relative to the maximum so far, and rescales earlier sums. */
template <bool spans, int n, int wide>
__device__ void update_softmax(struct softmax &f, float (&s)[n][4], float (&out)[wide][4], const struct score_tile &t)
{
	float next[2] = { f.max[0], f.max[1] }, shrink[2];

	for (int j = 0; j < n; j++)
		for (int e = 0; e < 4; e++) {
			const int key = t.from + 8 * j + lane_column(e);
			const bool seen = key <= t.row + lane_row(e) && (!spans || key >= f.begin[e / 2]);

			s[j][e] = seen ? s[j][e] * t.scale : -INFINITY;
			next[e / 2] = fmaxf(next[e / 2], s[j][e]);
		}
	for (int h = 0; h < 2; h++) {
		next[h] = row_max(next[h]);
		if (spans && next[h] == -INFINITY)
			next[h] = nearly_none; /* nothing is seen so far: -inf - -inf would be nan */
		shrink[h] = exp2f(f.max[h] - next[h]);
		f.max[h] = next[h];
		f.sum[h] *= shrink[h];
	}
	for (int j = 0; j < n; j++)
		for (int e = 0; e < 4; e++) {
			s[j][e] = exp2f(s[j][e] - next[e / 2]);
			f.sum[e / 2] += s[j][e];
		}
	for (int j = 0; j < wide; j++)
		for (int e = 0; e < 4; e++)
			out[j][e] *= shrink[e / 2];
}

template <int n> __device__ void apply_dropout(float (&p)[n][4], const struct mask &m, int row, int from)
{
	const uint32_t bits = draw_kept_bits<false, n>(m, row, from);

	for (int k = 0; k < 4 * n; k++)
		p[k / 4][k % 4] *= bits >> k & 1 ? (float)m.draw.scale : 0;
}

template <typename T, int wide, bool spans>
__global__ void __launch_bounds__(warps *WARP)
	flash_forward_kernel(struct attention_sizes z, const step_page *page, const T *qkv, T *y, float *lse)
{
	SHARED(T, keys, tile_rows * pitch<wide>);
	SHARED(T, values, tile_rows * pitch<wide>);
	const struct spot s = find_tile_spot(z, tile_rows, true);
	const struct mask m = make_attention_mask(z, s, page);
	const T *of_head = qkv + qkv_at(z, s, 0);
	const int64_t step = 3 * z.c;
	const int own = (int)threadIdx.x / WARP * rows_each, row = s.i + own;
	const float scale = log2_of_e / sqrtf((float)z.d);
	struct softmax f = { { -INFINITY, -INFINITY },
			     { 0, 0 },
			     { begin_of<spans>(z, s, row + lane_row(0)), begin_of<spans>(z, s, row + lane_row(2)) } };
	float out[wide / 8][4] = {}, inverse[2];
	uint32_t q[wide / 16][4];

	stage_head_rows<wide, tile_rows>(keys, of_head + s.i * step, step, z.seq - s.i, z.d);
	__syncthreads();
	for (int k = 0; k < wide / 16; k++)
		load_a<wide>(q[k], keys, own, 16 * k);
	for (int from = begin_of<spans>(z, s, s.i) / tile_rows * tile_rows; from <= s.i; from += tile_rows) {
		float p[tile_rows / 8][4] = {};

		__syncthreads();
		stage_head_rows<wide, tile_rows>(keys, of_head + z.c + from * step, step, z.seq - from, z.d);
		stage_head_rows<wide, tile_rows>(values, of_head + 2 * z.c + from * step, step, z.seq - from, z.d);
		__syncthreads();
		for (int k = 0; k < wide / 16; k++)
			multiply<wide>(p, q[k], keys, 16 * k);
		update_softmax<spans>(f, p, out, { row, from, scale });
		if (m.drops)
			apply_dropout(p, m, row, from);
		multiply_rows<wide>(out, p, values);
	}
	for (int h = 0; h < 2; h++) {
		const float sum = row_sum(f.sum[h]);

		inverse[h] = 1 / sum;
		if (threadIdx.x % 4 == 0 && inside(row + lane_row(2 * h) < z.seq))
			lse[lse_at(z, s, row + lane_row(2 * h))] = f.max[h] / log2_of_e + logf(sum);
	}
	store_rows<wide>(output_rows<T>{ y + y_at(z, s, 0), z.c }, out, inverse, row, z);
}

/* ---- backward ---- */

/* Log-sum-exp, in powers of two, dy . y, and the first key that is seen, of one query. */
struct row_statistics {
	float lse, inner;
	int begin;
};

template <bool spans, typename T>
__device__ struct row_statistics load_statistics(const struct attention_sizes &z, const struct spot &s,
						 const gradient<T> &b, int i)
{
	struct row_statistics of = { 0, 0, 0 };

	if (inside(i < z.seq))
		of = { b.lse[lse_at(z, s, i)] * log2_of_e, b.inner[lse_at(z, s, i)], begin_of<spans>(z, s, i) };
	return of;
}

/* From the products s = q . k and dp = dy . v: s becomes p m, dp becomes ds = p (m dp - dy . y). Rows are queries and
 * columns keys; by_key the other way round, and then `of` has the columns' statistics. */
template <bool by_key, bool spans, int n>
__device__ void differentiate_softmax(float (&s)[n][4], float (&dp)[n][4], const struct row_statistics *of,
				      const struct mask &m, const struct score_tile &t)
{
	const uint32_t bits = m.drops ? draw_kept_bits<by_key, n>(m, t.row, t.from) : 0;
	const float grows = m.drops ? (float)m.draw.scale : 1;

	for (int j = 0; j < n; j++)
		for (int e = 0; e < 4; e++) {
			const int mine = t.row + lane_row(e), other = t.from + 8 * j + lane_column(e);
			const int i = by_key ? other : mine, k = by_key ? mine : other;
			const struct row_statistics &q = by_key ? of[other - t.from] : of[e / 2];
			const bool seen = k <= i && i < m.seq && (!spans || k >= q.begin);
			const float p = seen ? exp2f(s[j][e] * t.scale - q.lse) : 0;
			const float kept = m.drops && !(bits >> (4 * j + e) & 1) ? 0 : grows;

			s[j][e] = p * kept;
			dp[j][e] = p * (kept * dp[j][e] - q.inner);
		}
}

/* Columns processed per step, limited by shared memory and registers. */
template <int wide> constexpr int columns_each = wide > 64 ? 16 : 32;

template <int wide, int rows, typename T>
__device__ void stage_side(T *first, T *second, const side<T> &of, int from, const struct attention_sizes &z)
{
	stage_head_rows<wide, rows>(first, of.first + from * of.first_step, of.first_step, z.seq - from, z.d);
	stage_head_rows<wide, rows>(second, of.second + from * of.second_step, of.second_step, z.seq - from, z.d);
}

/* Computes dq of 64 queries, or dk and dv of 64 keys. */
template <typename T, int wide, bool by_key, bool spans>
__global__ void __launch_bounds__(warps *WARP, wide > 64 ? 2 : 3)
	flash_backward_kernel(struct attention_sizes z, const step_page *page, gradient<T> b)
{
	constexpr int n = columns_each<wide>;
	SHARED(T, first, tile_rows * pitch<wide>);
	SHARED(T, second, tile_rows * pitch<wide>);
	SHARED(T, other_first, n * pitch<wide>);
	SHARED(T, other_second, n * pitch<wide>);
	SHARED(struct row_statistics, of_columns, n);
	const struct spot s = find_tile_spot(z, tile_rows, !by_key);
	const struct mask m = make_attention_mask(z, s, page);
	const int own = (int)threadIdx.x / WARP * rows_each, row = s.i + own;
	const float root = 1 / sqrtf((float)z.d), of_rows[2] = { root, root }, one[2] = { 1, 1 };
	const struct row_statistics of[2] = { load_statistics<spans>(z, s, b, row + lane_row(0)),
					      load_statistics<spans>(z, s, b, row + lane_row(2)) };
	const int end = by_key || z.seq < s.i + tile_rows ? z.seq : s.i + tile_rows;
	float d_first[wide / 8][4] = {}, d_second[wide / 8][4] = {};
	side<T> mine, other;

	pick_gradient_sides<by_key>(z, s, b, mine, other);
	stage_side<wide, tile_rows>(first, second, mine, s.i, z);
	for (int from = by_key ? s.i : begin_of<spans>(z, s, s.i) / n * n; from < end; from += n) {
		float p[n / 8][4] = {}, ds[n / 8][4] = {};
		uint32_t a[4];

		if (by_key && begin_of<spans>(z, s, from) >= s.i + tile_rows)
			break; /* nor do later queries see these keys */
		__syncthreads();
		stage_side<wide, n>(other_first, other_second, other, from, z);
		if (by_key && threadIdx.x < n)
			of_columns[threadIdx.x] = load_statistics<spans>(z, s, b, from + (int)threadIdx.x);
		__syncthreads();
		for (int k = 0; k < wide; k += 16) {
			load_a<wide>(a, first, own, k);
			multiply<wide>(p, a, other_first, k);
			load_a<wide>(a, second, own, k);
			multiply<wide>(ds, a, other_second, k);
		}
		differentiate_softmax<by_key, spans>(p, ds, by_key ? of_columns : of, m,
						     { row, from, root * log2_of_e });
		multiply_rows<wide>(d_first, ds, other_first);
		if (by_key)
			multiply_rows<wide>(d_second, p, other_second);
	}
	store_rows<wide>(output_rows<T>{ b.dqkv + qkv_at(z, s, 0) + (by_key ? z.c : 0), 3 * z.c }, d_first, of_rows,
			 row, z);
	if (by_key)
		store_rows<wide>(output_rows<T>{ b.dqkv + qkv_at(z, s, 0) + 2 * z.c, 3 * z.c }, d_second, one, row, z);
}

template <typename T, int wide, bool spans>
void launch_flash_forward(const struct attention_sizes &z, const struct kernel_args *a)
{
	launch(a, make_tile_grid(z, tile_rows), warps * WARP, flash_forward_kernel<T, wide, spans>, z, a->page,
	       cuda_in<T>(a, 0), cuda_out<T>(a, 0), cuda_out<float>(a, 1));
}

template <typename T, int wide, bool spans>
void launch_flash_backward(const struct attention_sizes &z, const struct kernel_args *a)
{
	const gradient<T> b = make_attention_gradient<T>(a);
	const dim3 grid = make_tile_grid(z, tile_rows);

	launch_inner_products<8, wide / 8>(z, a, b);
	launch(a, grid, warps * WARP, flash_backward_kernel<T, wide, false, spans>, z, a->page, b);
	launch(a, grid, warps * WARP, flash_backward_kernel<T, wide, true, spans>, z, a->page, b);
}

/* Runs it for the smallest width of a tile that holds a head. */
template <typename T, bool spans, bool backward>
void launch_flash(const struct attention_sizes &z, const struct kernel_args *a)
{
	if (backward)
		z.d <= 64 ? launch_flash_backward<T, 64, spans>(z, a) : launch_flash_backward<T, 128, spans>(z, a);
	else
		z.d <= 64 ? launch_flash_forward<T, 64, spans>(z, a) : launch_flash_forward<T, 128, spans>(z, a);
}

template <bool backward>
void launch_flash_of_type(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a)
{
	if (type == DTYPE_BF16)
		z.spans ? launch_flash<bf16, true, backward>(z, a) : launch_flash<bf16, false, backward>(z, a);
	else
		z.spans ? launch_flash<f16, true, backward>(z, a) : launch_flash<f16, false, backward>(z, a);
}

} // namespace flash_kernels

bool flash_takes(const struct attention_sizes &z, enum dtype type)
{
	return (type == DTYPE_BF16 || type == DTYPE_F16) && z.d % 8 == 0 && z.d <= 128 && z.cap <= 0;
}

void flash_forward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a)
{
	launch_flash_of_type<false>(z, type, a);
}

void flash_backward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a)
{
	launch_flash_of_type<true>(z, type, a);
}
