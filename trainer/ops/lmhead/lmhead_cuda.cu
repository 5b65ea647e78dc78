/* SPDX-License-Identifier: Apache-2.0 */
/* lmhead_cuda.cu: the classifier with its loss, by blocks of rows. The logits of a block are in the workspace; they are
 * replaced there by their gradients in the type of x, from which dx and dw are computed at once. */
#include <float.h>
#include <stdlib.h>

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/backends/cuda/cuda_matmul.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"
}

inline namespace lmhead_kernels {

/* Limits of the logits of one block of rows: bytes per row of the batch, with a minimum and a maximum. With small
 * blocks dx has too few tiles for a large GPU (5056 rows of 768: 40 by 3 tiles of 128 by 256), and each block reads and
 * writes all of dw once more. */
constexpr int64_t logits_bytes_each = 16 << 10;
constexpr int64_t logits_bytes_least = 256 << 20;
constexpr int64_t logits_bytes_most = 1 << 30;
constexpr int64_t rows_unit = 64; /* a block has a multiple of this many rows */
constexpr int64_t pitch_of = 64;  /* rows of logits start at multiples of this many elements */
constexpr int64_t even_unit = 8;  /* words: products with other sizes run at an eighth of the rate on an H100 */
constexpr int row_threads = 1024; /* few rows at a time: most remain in the cache until their gradients are computed */

struct lmhead_sizes {
	int64_t rows, c, v;
	int64_t pitch; /* row pitch of logits */
	int64_t each;  /* rows per block */
	size_t acc;
};

struct lmhead_sizes choose_block_sizes(const struct node *n)
{
	struct lmhead_sizes z = { n->in[0]->shape.dim[0], n->in[0]->shape.dim[1], n->in[1]->shape.dim[0], 0, 0,
			   n->in[0]->dtype == DTYPE_F64 ? sizeof(double) : sizeof(float) };
	int64_t room = z.rows * logits_bytes_each, fit, blocks;

	room = room < logits_bytes_least ? logits_bytes_least : room < logits_bytes_most ? room : logits_bytes_most;
	z.pitch = (z.v + pitch_of - 1) / pitch_of * pitch_of;
	fit = room / (z.pitch * (int64_t)z.acc) / rows_unit * rows_unit;
	fit = fit < rows_unit ? rows_unit : fit;
	blocks = (z.rows + fit - 1) / fit;
	z.each = blocks > 1 ? ((z.rows + blocks - 1) / blocks + rows_unit - 1) / rows_unit * rows_unit : z.rows;
	return z;
}

size_t round_up_256(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

size_t count_logits_bytes(const struct lmhead_sizes &z)
{
	return round_up_256((size_t)z.each * (size_t)z.pitch * z.acc);
}

size_t count_losses_bytes(const struct lmhead_sizes &z)
{
	return round_up_256((size_t)z.rows * 2 * sizeof(double));
}

enum product { LOGITS, DX, DW, PRODUCTS };
enum block { WHOLE, LAST, BLOCKS }; /* the last block of rows may be smaller */
enum part { EVEN, REST, PARTS };    /* parts of the vocabulary: a multiple of even_unit words, and the rest */

struct classifier {
	const struct node *n;
	struct lmhead_sizes z;
	struct matmul *product[BLOCKS][PARTS][PRODUCTS]; /* NULL: not needed, or no words */
};

int64_t first_word(const struct lmhead_sizes &z, int part)
{
	return part == EVEN ? 0 : z.v / even_unit * even_unit;
}

int64_t count_part_words(const struct lmhead_sizes &z, int part)
{
	return part == EVEN ? z.v / even_unit * even_unit : z.v % even_unit;
}

/* logits = x w^T; dx = g w; dw = g^T x. g, the gradients of the logits, replace the logits. v: number of words. */
struct matmul_spec make_product_spec(const struct classifier &l, enum product product, int64_t rows, int64_t v)
{
	const enum dtype low = l.n->in[0]->dtype, master = low == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
	const int64_t g_pitch = l.z.pitch * (int64_t)(l.z.acc / dtype_bytes(low)), c = l.z.c;

	if (product == LOGITS)
		return { rows, v, c, low, master, false, true, c, c, l.z.pitch, false };
	if (product == DX)
		return { rows, c, v, low, low, false, false, g_pitch, c, c, false };
	return { v, c, rows, low, master, true, false, g_pitch, c, c, false };
}

/* Plans the products of a block of rows and a part of the vocabulary. */
int plan_vocabulary_part(struct classifier *l, const struct kernel_env *env, int block, int part, struct err *err)
{
	const int64_t last = l->z.each ? l->z.rows % l->z.each : 0, rows = block == WHOLE ? l->z.each : last;
	const bool wanted[PRODUCTS] = { true, l->n->out[LMHEAD_DX] != nullptr, l->n->out[LMHEAD_DW] != nullptr };
	const int64_t words = count_part_words(l->z, part);
	int rc = 0;

	for (int p = 0; !rc && rows && words && p < PRODUCTS; p++) {
		const struct matmul_spec s = make_product_spec(*l, (enum product)p, rows, words);

		rc = wanted[p] ? matmul_new(&l->product[block][part][p], env, l->n, &s, err) : 0;
	}
	return rc;
}

int plan_lmhead_products(struct classifier *l, const struct kernel_env *env, struct err *err)
{
	int rc = 0;

	for (int b = 0; !rc && b < BLOCKS; b++)
		for (int part = 0; !rc && part < PARTS; part++)
			rc = plan_vocabulary_part(l, env, b, part, err);
	return rc;
}

/* Calls f(product) for each product. */
template <class F> void for_each_product(const struct classifier *l, const F &f)
{
	for (int b = 0; b < BLOCKS; b++)
		for (int part = 0; part < PARTS; part++)
			for (int p = 0; p < PRODUCTS; p++)
				if (l->product[b][part][p])
					f(l->product[b][part][p]);
}

void release_lmhead_cuda(void *state)
{
	struct classifier *l = static_cast<struct classifier *>(state);

	if (l)
		for_each_product(l, [](struct matmul *m) { matmul_free(m); });
	free(l);
}

/* Workspace: logits, loss and count per row, workspace of the products. */
size_t count_workspace_bytes(const struct classifier *l)
{
	size_t most = 0;

	for_each_product(
		l, [&most](const struct matmul *m) { most = matmul_workspace(m) > most ? matmul_workspace(m) : most; });
	return count_logits_bytes(l->z) + count_losses_bytes(l->z) + most;
}

int prepare_lmhead_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct classifier *l = static_cast<struct classifier *>(mem_zalloc(sizeof(*l)));
	int rc;

	l->n = n;
	l->z = choose_block_sizes(n);
	rc = plan_lmhead_products(l, env, err);
	if (rc) {
		release_lmhead_cuda(l);
		return rc;
	}
	n->workspace_bytes = count_workspace_bytes(l);
	*ret_state = l;
	return 0;
}

/* One block per row: computes its loss, and replaces its logits by scale (softmax - onehot) if gradients are needed. */
template <typename T> struct loss_rows {
	acc_t<T> *logits;
	const int32_t *targets;
	double *losses; /* [rows][2] */
	int32_t *best;	/* NULL: not wanted */
	const step_page *page;
	int v;
	int64_t pitch;
	acc_t<T> cap; /* of logits, which have it already; 0: none */
	bool wants_grads;
};

template <typename M> constexpr M lowest = -FLT_MAX;
template <> constexpr double lowest<double> = -DBL_MAX;

/* Loads logits j to j + W. Elements beyond the row's end get zero weight. */
template <int W, typename M> __device__ void load_logits(M (&x)[W], const M *row, int j, int v)
{
	load(x, row + j);
	if (inside(j + W <= v))
		return;
	for (int k = 0; k < W; k++)
		x[k] = j + k < v ? x[k] : lowest<M>;
}

/* Log-sum-exp of a row, in every thread of the block. Each thread keeps the largest value so far and a sum relative to
 * it. The lowest finite number marks "no value yet", since -inf would give -inf - -inf. */
template <int W, typename M> __device__ M compute_log_sum_exp(const M *row, int v)
{
	M max = lowest<M>, sum = 0, all;

	for (int j = (int)threadIdx.x * W; j < v; j += (int)blockDim.x * W) {
		M x[W], past = max;

		load_logits(x, row, j, v);
		for (int k = 0; k < W; k++)
			max = fmax(max, x[k]);
		sum *= exp(past - max);
		for (int k = 0; k < W; k++)
			sum += exp(x[k] - max);
	}
	all = block_max(max);
	return all + log(block_sum(sum * exp(max - all)));
}

/* Returns the first word of the row's largest logit, in every thread of the block. */
template <typename M> __device__ int32_t find_best_word(const M *row, int v)
{
	M most = lowest<M>, all;
	int at = v;

	for (int j = (int)threadIdx.x; j < v; j += (int)blockDim.x)
		if (row[j] > most) {
			most = row[j];
			at = j;
		}
	all = block_max(most);
	return (int32_t)-block_max((double)(most == all ? -at : -v));
}

/* Replaces logits by gradients in place. A gradient may be half as wide as its logit, so gradients of one round
 * overwrite logits of this or earlier rounds. Elements after the row, up to the end of a vector, become 0. */
template <typename T>
__device__ void convert_to_gradients(acc_t<T> *row, const loss_rows<T> &r, int32_t target, acc_t<T> lse)
{
	const acc_t<T> scale = (acc_t<T>)(r.page->inv_count * r.page->loss_scale);
	const int v = r.v;
	constexpr int W = vector_width<T>;
	using M = acc_t<T>;
	T *to = reinterpret_cast<T *>(row);

	for (int from = 0; from < v; from += (int)blockDim.x * W) {
		const int j = from + (int)threadIdx.x * W;
		const bool mine = inside(j < v);
		M g[W];

		if (mine) {
			load_logits(g, row, j, v);
			for (int k = 0; k < W; k++) {
				const M bent = r.cap > 0 && j + k < v ? g[k] / r.cap : M(0), slope = 1 - bent * bent;

				g[k] = target >= 0 ? scale * slope * (exp(g[k] - lse) - (M)(j + k == target)) : M(0);
			}
		}
		if (sizeof(T) < sizeof(M))
			__syncthreads();
		if (mine)
			store(to + j, g);
	}
}

template <typename T> __global__ void __launch_bounds__(row_threads) row_loss_kernel(loss_rows<T> r)
{
	using M = acc_t<T>;
	const int32_t target = r.targets[blockIdx.x];
	M *row = r.logits + (int64_t)blockIdx.x * r.pitch;
	const M lse = compute_log_sum_exp<vector_width<T>>(row, r.v);

	if (threadIdx.x == 0) {
		r.losses[2 * blockIdx.x] = target < 0 ? 0 : (double)lse - (double)row[target];
		r.losses[2 * blockIdx.x + 1] = target >= 0;
	}
	if (r.best) {
		const int32_t best = find_best_word(row, r.v);

		if (threadIdx.x == 0)
			r.best[blockIdx.x] = target < 0 || best == r.v ? 0 : best;
	}
	if (!r.wants_grads)
		return;
	__syncthreads(); /* the loss has been computed from the logits */
	convert_to_gradients<T>(row, r, target, lse);
}

__global__ void sum_loss_kernel(const double *losses, int64_t rows, double *result)
{
	double loss = 0, count = 0;

	for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
		loss += losses[2 * i];
		count += losses[2 * i + 1];
	}
	loss = block_sum(loss);
	count = block_sum(count);
	if (threadIdx.x)
		return;
	result[XENT_LOSS_SUM] = loss;
	result[XENT_TOP1] = result[XENT_TOP5] = 0;
	result[XENT_COUNT] = count;
}

/* Copies elements out of padded rows. */
template <typename M> struct padded_copy {
	static constexpr int width = 1;
	const M *from;
	M *to;
	int64_t v, pitch;

	template <int W> __device__ void at(int64_t i) const
	{
		to[i] = from[i / v * pitch + i % v];
	}
};

/* Caps the logits of padded rows. */
template <typename M> struct logit_cap {
	static constexpr int width = 1;
	M *logits;
	int64_t v, pitch;
	M cap;

	template <int W> __device__ void at(int64_t i) const
	{
		M &logit = logits[i / v * pitch + i % v];

		logit = cap * M(tanh(logit / cap));
	}
};

/* Rows [first, first + rows) of the batch. */
struct rows_block {
	int64_t first, rows;
	struct matmul *const (*product)[PRODUCTS]; /* by part of the vocabulary */
	void *room;				   /* workspace of the products */
};

/* Gradients of all rows of the block for one part of the vocabulary; dx accumulates over the parts. */
template <typename T>
void compute_block_grads(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, int part)
{
	const int64_t c = l->z.c, word = first_word(l->z, part);
	const T *x = cuda_in<T>(a, 0) + b.first * c, *w = cuda_in<T>(a, 1) + word * c;
	const T *g = static_cast<const T *>(a->workspace) + word;
	struct matmul *const *product = b.product[part];

	if (product[DX]) {
		const struct matmul_operands o = { g, w, cuda_out<T>(a, LMHEAD_DX) + b.first * c, nullptr,
						   part == REST && b.product[EVEN][DX], b.room, a->stream };

		matmul_run(product[DX], &o);
	}
	if (product[DW]) {
		const struct matmul_operands o = { g, x, cuda_out<acc_t<T>>(a, LMHEAD_DW) + word * c, nullptr,
						   b.first > 0, b.room, a->stream };

		matmul_run(product[DW], &o);
	}
}

template <typename T>
void compute_block_logits(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, int part)
{
	const int64_t c = l->z.c, word = first_word(l->z, part);
	const struct matmul_operands o = { cuda_in<T>(a, 0) + b.first * c, cuda_in<T>(a, 1) + word * c,
					   static_cast<acc_t<T> *>(a->workspace) + word, nullptr, false, b.room,
					   a->stream };

	if (b.product[part][LOGITS])
		matmul_run(b.product[part][LOGITS], &o);
}

template <typename T>
void run_row_block(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, double *losses)
{
	using M = acc_t<T>;
	const struct lmhead_sizes &z = l->z;
	const struct node *n = l->n;
	const bool wants = n->out[LMHEAD_DX] || n->out[LMHEAD_DW];
	M *logits = static_cast<M *>(a->workspace);

	for (int part = 0; part < PARTS; part++)
		compute_block_logits<T>(l, a, b, part);
	if (lmhead_cap(n) > 0)
		cuda_each(n, a, logit_cap<M>{ logits, z.v, z.pitch, (M)lmhead_cap(n) }, { b.rows * z.v, 0 });
	if (n->out[LMHEAD_LOGITS])
		cuda_each(n, a, padded_copy<M>{ logits, cuda_out<M>(a, LMHEAD_LOGITS) + b.first * z.v, z.v, z.pitch },
			  { b.rows * z.v, 0 });
	launch(a, dim3((unsigned)b.rows), row_threads, row_loss_kernel<T>,
	       loss_rows<T>{ logits, cuda_in<int32_t>(a, 2) + b.first, losses + 2 * b.first,
			     n->out[LMHEAD_BEST] ? cuda_out<int32_t>(a, LMHEAD_BEST) + b.first : nullptr, a->page,
			     (int)z.v, z.pitch, (M)lmhead_cap(n), wants });
	for (int part = 0; part < PARTS; part++)
		compute_block_grads<T>(l, a, b, part);
}

template <typename T> void launch_lmhead(const struct classifier *l, const struct kernel_args *a)
{
	const struct lmhead_sizes &z = l->z;
	char *after_logits = static_cast<char *>(a->workspace) + count_logits_bytes(z);
	double *losses = reinterpret_cast<double *>(after_logits);

	if (!z.rows && l->n->out[LMHEAD_DW]) /* no rows: the gradient is zero */
		cudaMemsetAsync(a->out[LMHEAD_DW], 0, tensor_bytes(l->n->out[LMHEAD_DW]), (cudaStream_t)a->stream);
	for (int64_t first = 0; first < z.rows; first += z.each) {
		const int64_t left = z.rows - first;
		const struct rows_block b = { first, left < z.each ? left : z.each,
					      l->product[left < z.each ? LAST : WHOLE],
					      after_logits + count_losses_bytes(z) };

		run_row_block<T>(l, a, b, losses);
	}
	if (z.rows && l->n->out[LMHEAD_LOSSES])
		cuda_each(l->n, a, padded_copy<double>{ losses, cuda_out<double>(a, LMHEAD_LOSSES), 1, 2 },
			  { z.rows, 0 });
	launch(a, dim3(1), BLOCK_THREADS, sum_loss_kernel, losses, z.rows, cuda_out<double>(a, LMHEAD_RESULT));
}

void run_lmhead_cuda(void *state, const struct kernel_args *a)
{
	const struct classifier *l = static_cast<const struct classifier *>(state);

	BY_TYPE(l->n->in[0]->dtype, T, launch_lmhead<T>(l, a));
}

const char *name_lmhead_impl(const void *state)
{
	const struct matmul *m = static_cast<const struct classifier *>(state)->product[WHOLE][EVEN][LOGITS];

	return m ? matmul_impl(m) : nullptr;
}

} // namespace lmhead_kernels

CUDA_KERNEL_OF(lmhead, prepare_lmhead_cuda, run_lmhead_cuda, release_lmhead_cuda, name_lmhead_impl);
