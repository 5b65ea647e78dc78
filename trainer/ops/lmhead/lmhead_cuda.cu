/* lmhead_cuda.cu: the classifier with its loss, a block of rows at a time: their logits lie in the workspace and become
 * their gradients there, in the type of x, from which dx and dw are made at once. */
#include <float.h>
#include <stdlib.h>

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/backends/cuda/cuda_matmul.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"
}

namespace {

/* What the logits of one block of rows may take: so much for each row of the batch, within bounds. Of a small block dx
 * has too few tiles for a large GPU (5056 rows of 768: 40 by 3 tiles of 128 by 256), and each block reads and writes
 * all of dw once more. */
constexpr int64_t logits_bytes_each = 16 << 10;
constexpr int64_t logits_bytes_least = 256 << 20;
constexpr int64_t logits_bytes_most = 1 << 30;
constexpr int64_t rows_unit = 64; /* a block has a multiple of so many */
constexpr int64_t pitch_of = 64;  /* rows of logits begin at multiples of so many elements */
constexpr int64_t even_unit = 8;  /* words: products of other numbers of them run at an eighth of the rate on an H100 */
constexpr int row_threads = 1024; /* few rows at a time: most are in the cache until their gradients are made */

struct sizes {
	int64_t rows, c, v;
	int64_t pitch; /* of logits */
	int64_t each;  /* rows of a block */
	size_t acc;
};

struct sizes sizes_of(const struct node *n)
{
	struct sizes z = { n->in[0]->shape.dim[0], n->in[0]->shape.dim[1], n->in[1]->shape.dim[0], 0, 0,
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

size_t round_up(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

size_t logits_room(const struct sizes &z)
{
	return round_up((size_t)z.each * (size_t)z.pitch * z.acc);
}

size_t losses_room(const struct sizes &z)
{
	return round_up((size_t)z.rows * 2 * sizeof(double));
}

enum product { LOGITS, DX, DW, PRODUCTS };
enum block { WHOLE, LAST, BLOCKS }; /* the last block of rows may be smaller */
enum part { EVEN, REST, PARTS };    /* of the vocabulary: a multiple of even_unit words, and fewer than one unit */

struct classifier {
	const struct node *n;
	struct sizes z;
	struct matmul *product[BLOCKS][PARTS][PRODUCTS]; /* NULL: not asked for, or of no words */
};

int64_t first_word(const struct sizes &z, int part)
{
	return part == EVEN ? 0 : z.v / even_unit * even_unit;
}

int64_t words_of(const struct sizes &z, int part)
{
	return part == EVEN ? z.v / even_unit * even_unit : z.v % even_unit;
}

/* logits = x w^T; dx = g w; dw = g^T x, with g, the gradients of the logits, where these lay; v: of the words. */
struct matmul_spec spec_of(const struct classifier &l, enum product product, int64_t rows, int64_t v)
{
	const enum dtype low = l.n->in[0]->dtype, master = low == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
	const int64_t g_pitch = l.z.pitch * (int64_t)(l.z.acc / dtype_bytes(low)), c = l.z.c;

	if (product == LOGITS)
		return { rows, v, c, low, master, false, true, c, c, l.z.pitch, false };
	if (product == DX)
		return { rows, c, v, low, low, false, false, g_pitch, c, c, false };
	return { v, c, rows, low, master, true, false, g_pitch, c, c, false };
}

int plan_part(struct classifier *l, const struct kernel_env *env, int64_t rows, int part, struct matmul **ret,
	      struct err *err)
{
	const bool wanted[PRODUCTS] = { true, l->n->out[LMHEAD_DX] != nullptr, l->n->out[LMHEAD_DW] != nullptr };
	const int64_t words = words_of(l->z, part);
	int rc = 0;

	for (int p = 0; !rc && rows && words && p < PRODUCTS; p++) {
		const struct matmul_spec s = spec_of(*l, (enum product)p, rows, words);

		rc = wanted[p] ? matmul_new(&ret[p], env, l->n, &s, err) : 0;
	}
	return rc;
}

int plan_products(struct classifier *l, const struct kernel_env *env, struct err *err)
{
	const int64_t rows[BLOCKS] = { l->z.each, l->z.each ? l->z.rows % l->z.each : 0 };
	int rc = 0;

	for (int b = 0; !rc && b < BLOCKS; b++)
		for (int part = 0; !rc && part < PARTS; part++)
			rc = plan_part(l, env, rows[b], part, l->product[b][part], err);
	return rc;
}

/* f(product) of each. */
template <class F> void each_product(const struct classifier *l, const F &f)
{
	for (int b = 0; b < BLOCKS; b++)
		for (int part = 0; part < PARTS; part++)
			for (int p = 0; p < PRODUCTS; p++)
				if (l->product[b][part][p])
					f(l->product[b][part][p]);
}

void lmhead_release(void *state)
{
	struct classifier *l = static_cast<struct classifier *>(state);

	if (l)
		each_product(l, [](struct matmul *m) { matmul_free(m); });
	free(l);
}

/* Workspace: logits, loss and count of each row, what products want. */
size_t workspace_of(const struct classifier *l)
{
	size_t most = 0;

	each_product(l, [&most](const struct matmul *m) {
		most = matmul_workspace(m) > most ? matmul_workspace(m) : most;
	});
	return logits_room(l->z) + losses_room(l->z) + most;
}

int lmhead_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct classifier *l = static_cast<struct classifier *>(calloc(1, sizeof(*l)));
	int rc;

	if (!l)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: %s", n->name);
	l->n = n;
	l->z = sizes_of(n);
	rc = plan_products(l, env, err);
	if (rc) {
		lmhead_release(l);
		return rc;
	}
	n->workspace_bytes = workspace_of(l);
	*ret_state = l;
	return 0;
}

/* A block a row: its loss, and its logits turned into scale (softmax - onehot) where gradients are wanted. */
template <typename T> struct rows_of_losses {
	acc_t<T> *logits;
	const int32_t *targets;
	double *losses; /* [rows][2] */
	const step_page *page;
	int v;
	int64_t pitch;
	bool gradients;
};

template <typename M> constexpr M lowest = -FLT_MAX;
template <> constexpr double lowest<double> = -DBL_MAX;

/* Logits j to j + W; those behind the row's end weigh nothing. */
template <int W, typename M> __device__ void load_logits(M (&x)[W], const M *row, int j, int v)
{
	load(x, row + j);
	if (inside(j + W <= v))
		return;
	for (int k = 0; k < W; k++)
		x[k] = j + k < v ? x[k] : lowest<M>;
}

/* log sum exp of a row, in every thread of the block: each keeps the largest of what it has seen, and a sum in units of
 * its exponential. The lowest number stands for nothing seen; -inf would leave -inf - -inf. */
template <int W, typename M> __device__ M log_sum_exp(const M *row, int v)
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

/* In place: a gradient may be half as wide as the logit that it replaces, so that those of a round lie where logits of
 * this round and earlier ones lay. Up to the end of a vector what lies behind the row becomes 0. */
template <typename T>
__device__ void turn_to_gradients(acc_t<T> *row, int v, int32_t target, acc_t<T> lse, acc_t<T> scale)
{
	constexpr int W = vector_width<T>;
	using M = acc_t<T>;
	T *to = reinterpret_cast<T *>(row);

	for (int from = 0; from < v; from += (int)blockDim.x * W) {
		const int j = from + (int)threadIdx.x * W;
		const bool mine = inside(j < v);
		M g[W];

		if (mine) {
			load_logits(g, row, j, v);
			for (int k = 0; k < W; k++)
				g[k] = target >= 0 ? scale * (exp(g[k] - lse) - (M)(j + k == target)) : M(0);
		}
		if (sizeof(T) < sizeof(M))
			__syncthreads();
		if (mine)
			store(to + j, g);
	}
}

template <typename T> __global__ void __launch_bounds__(row_threads) row_losses(rows_of_losses<T> r)
{
	using M = acc_t<T>;
	const int32_t target = r.targets[blockIdx.x];
	M *row = r.logits + (int64_t)blockIdx.x * r.pitch;
	const M lse = log_sum_exp<vector_width<T>>(row, r.v);

	if (threadIdx.x == 0) {
		r.losses[2 * blockIdx.x] = target < 0 ? 0 : (double)lse - (double)row[target];
		r.losses[2 * blockIdx.x + 1] = target >= 0;
	}
	if (!r.gradients)
		return;
	__syncthreads(); /* the loss has been read */
	turn_to_gradients<T>(row, r.v, target, lse, (M)(r.page->inv_count * r.page->loss_scale));
}

__global__ void sum_losses(const double *losses, int64_t rows, double *result)
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

/* Out of the padded rows. */
template <typename M> struct copy {
	static constexpr int width = 1;
	const M *from;
	M *to;
	int64_t v, pitch;

	template <int W> __device__ void at(int64_t i) const
	{
		to[i] = from[i / v * pitch + i % v];
	}
};

/* Rows first to first + rows of the batch. */
struct rows_block {
	int64_t first, rows;
	struct matmul *const (*product)[PRODUCTS]; /* by part */
	void *room;				   /* of products */
};

/* Those of all rows of the block for some words; of dx what the other words have brought is kept. */
template <typename T>
int gradients(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, int part,
	      struct err *err)
{
	const int64_t c = l->z.c, word = first_word(l->z, part);
	const T *x = cuda_in<T>(a, 0) + b.first * c, *w = cuda_in<T>(a, 1) + word * c;
	const T *g = static_cast<const T *>(a->workspace) + word;
	struct matmul *const *product = b.product[part];
	int rc = 0;

	if (product[DX]) {
		const struct matmul_operands o = { g, w, cuda_out<T>(a, LMHEAD_DX) + b.first * c, nullptr,
						   part == REST && b.product[EVEN][DX], b.room, a->stream };

		rc = matmul_run(product[DX], &o, err);
	}
	if (!rc && product[DW]) {
		const struct matmul_operands o = { g, x, cuda_out<acc_t<T>>(a, LMHEAD_DW) + word * c, nullptr,
						   b.first > 0, b.room, a->stream };

		rc = matmul_run(product[DW], &o, err);
	}
	return rc;
}

template <typename T>
int logits_of(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, int part,
	      struct err *err)
{
	const int64_t c = l->z.c, word = first_word(l->z, part);
	const struct matmul_operands o = { cuda_in<T>(a, 0) + b.first * c, cuda_in<T>(a, 1) + word * c,
					   static_cast<acc_t<T> *>(a->workspace) + word, nullptr, false, b.room,
					   a->stream };

	return b.product[part][LOGITS] ? matmul_run(b.product[part][LOGITS], &o, err) : 0;
}

template <typename T>
int block_of_rows(const struct classifier *l, const struct kernel_args *a, const struct rows_block &b, double *losses,
		  struct err *err)
{
	using M = acc_t<T>;
	const struct sizes &z = l->z;
	const struct node *n = l->n;
	const bool wants = n->out[LMHEAD_DX] || n->out[LMHEAD_DW];
	M *logits = static_cast<M *>(a->workspace);
	int rc = 0;

	for (int part = 0; !rc && part < PARTS; part++)
		rc = logits_of<T>(l, a, b, part, err);
	if (!rc && n->out[LMHEAD_LOGITS])
		rc = cuda_each(n, a, copy<M>{ logits, cuda_out<M>(a, LMHEAD_LOGITS) + b.first * z.v, z.v, z.pitch },
			       b.rows * z.v, 0, err);
	if (rc)
		return rc;
	launch(a, dim3((unsigned)b.rows), row_threads, row_losses<T>,
	       rows_of_losses<T>{ logits, cuda_in<int32_t>(a, 2) + b.first, losses + 2 * b.first, a->page, (int)z.v,
				  z.pitch, wants });
	for (int part = 0; !rc && part < PARTS; part++)
		rc = gradients<T>(l, a, b, part, err);
	return rc;
}

template <typename T> int lmhead(const struct classifier *l, const struct kernel_args *a, struct err *err)
{
	const struct sizes &z = l->z;
	char *behind = static_cast<char *>(a->workspace) + logits_room(z);
	double *losses = reinterpret_cast<double *>(behind);
	int rc = 0;

	if (!z.rows && l->n->out[LMHEAD_DW]) /* no rows leave no gradient */
		cudaMemsetAsync(a->out[LMHEAD_DW], 0, tensor_bytes(l->n->out[LMHEAD_DW]), (cudaStream_t)a->stream);
	for (int64_t first = 0; !rc && first < z.rows; first += z.each) {
		const int64_t left = z.rows - first;
		const struct rows_block b = { first, left < z.each ? left : z.each,
					      l->product[left < z.each ? LAST : WHOLE], behind + losses_room(z) };

		rc = block_of_rows<T>(l, a, b, losses, err);
	}
	if (!rc && z.rows && l->n->out[LMHEAD_LOSSES])
		rc = cuda_each(l->n, a, copy<double>{ losses, cuda_out<double>(a, LMHEAD_LOSSES), 1, 2 }, z.rows, 0,
			       err);
	launch(a, dim3(1), BLOCK_THREADS, sum_losses, losses, z.rows, cuda_out<double>(a, LMHEAD_RESULT));
	return rc ? rc : cuda_launched(l->n, err);
}

int lmhead_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct classifier *l = static_cast<const struct classifier *>(state);

	BY_TYPE(l->n->in[0]->dtype, T, return lmhead<T>(l, a, err));
}

const char *lmhead_impl(const void *state)
{
	const struct matmul *m = static_cast<const struct classifier *>(state)->product[WHOLE][EVEN][LOGITS];

	return m ? matmul_impl(m) : nullptr;
}

} // namespace

CUDA_KERNEL_OF(lmhead, lmhead_prepare, lmhead_run, lmhead_release, lmhead_impl);
