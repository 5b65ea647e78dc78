/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cuda.h: parts shared by the GPU implementations of attention: addresses of heads, dropout of probabilities,
 * and the interface of the tiled kernels. */
#ifndef DPT_OPS_ATTENTION_CUDA_H
#define DPT_OPS_ATTENTION_CUDA_H

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/attention/attention.h"
}

struct attention_sizes {
	int64_t rows; /* heads over all positions */
	int c, d, seq, heads;
	bool drops;
	struct dropout_attr dropout;
	int window;
	double cap;	       /* of scores; 0: none. Only a warp a row has it */
	bool spans;	       /* positions do not see all before them */
	const int32_t *places; /* set per run */
};

static inline struct attention_sizes read_attention_sizes(const struct node *n, bool backward)
{
	const struct tensor *qkv = n->in[backward], *places = n->in[backward ? 4 : 1];
	const struct attention_attr *a = static_cast<const struct attention_attr *>(n->attr);
	const int c = (int)qkv->shape.dim[1] / 3;

	return { qkv->shape.dim[0] * a->heads,
		 c,
		 c / (int)a->heads,
		 (int)a->seq,
		 (int)a->heads,
		 a->dropout.p > 0,
		 a->dropout,
		 (int)a->window,
		 a->cap,
		 a->window || places,
		 nullptr };
}

/* One head at one position, i of its sequence. */
struct spot {
	int64_t sequence, head; /* index of the sequence, and of the head within it */
	int i;
};

__device__ inline int64_t qkv_at(const struct attention_sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * 3 * z.c + s.head * z.d;
}

__device__ inline int64_t y_at(const struct attention_sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * z.c + s.head * z.d;
}

/* The first position that i sees; i: of the sequence. */
__device__ inline int begin_at(const struct attention_sizes &z, const struct spot &s, int i)
{
	return (int)attention_begin(z.window, z.places ? z.places + s.sequence * z.seq : nullptr, i);
}

__device__ inline int64_t lse_at(const struct attention_sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * z.heads + s.head;
}

/* Dropout factor of the probability of key j for query i. */
struct mask {
	struct dropout_draw draw;
	uint64_t first;
	int seq;
	bool drops;

	__device__ double operator()(int i, int j) const
	{
		const uint64_t element = first + (uint64_t)i * (uint64_t)seq + (uint64_t)j;

		return !drops ? 1 : dropout_keeps(&draw, element) ? draw.scale : 0;
	}
};

__device__ inline struct mask make_attention_mask(const struct attention_sizes &z, const struct spot &s,
						  const step_page *page)
{
	struct mask m = { {}, 0, z.seq, z.drops };

	if (z.drops)
		m.draw = dropout_draw(&z.dropout, page);
	m.first = (uint64_t)(s.sequence * z.heads + s.head) * (uint64_t)z.seq * (uint64_t)z.seq;
	return m;
}

/* Operands and output of the gradient. */
template <typename T> struct gradient {
	const T *dy, *qkv, *y;
	const acc_t<T> *lse;
	acc_t<T> *inner; /* dy . y per row, in the workspace */
	T *dqkv;
};

template <typename T> static inline gradient<T> make_attention_gradient(const struct kernel_args *a)
{
	return { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 2), cuda_in<acc_t<T>>(a, 3),
		 static_cast<acc_t<T> *>(a->workspace), cuda_out<T>(a, 0) };
}

/* ---- tiles ---- */

/* Output rows, `step` elements apart. */
template <typename T> struct output_rows {
	T *to;
	int64_t step;
};

/* The first of a block's `rows` positions. Blocks with the longest rows are scheduled first, over all heads. */
__device__ inline struct spot find_tile_spot(const struct attention_sizes &z, int rows, bool last_is_longest)
{
	const int64_t heads = z.rows / z.seq, head = blockIdx.x % heads;
	const int tiles = (z.seq + rows - 1) / rows, tile = (int)(blockIdx.x / heads);

	return { head / z.heads, head % z.heads, (last_is_longest ? tiles - 1 - tile : tile) * rows };
}

static inline dim3 make_tile_grid(const struct attention_sizes &z, int rows)
{
	return dim3((unsigned)(z.rows / z.seq * ((z.seq + rows - 1) / rows)));
}

/* Computes dy . y per row: `together` lanes share a head, `each` elements per lane. */
template <int each, int together, typename T> __global__ void inner_products(struct attention_sizes z, gradient<T> b)
{
	const int64_t number = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / together;
	const int first = (int)threadIdx.x % together * each;
	float sum = 0, dy[each], y[each];

	if (inside(number < z.rows && first < z.d)) {
		load(dy, b.dy + number * z.d + first);
		load(y, b.y + number * z.d + first);
		for (int k = 0; k < each; k++)
			sum += dy[k] * y[k];
	}
	for (int lanes = together / 2; lanes > 0; lanes /= 2)
		sum += __shfl_xor_sync(WHOLE_WARP, sum, lanes);
	if (first == 0 && inside(number < z.rows))
		b.inner[number] = sum;
}

/* Launches inner_products, the first kernel of a tiled gradient. */
template <int each, int together, typename T>
static void launch_inner_products(const struct attention_sizes &z, const struct kernel_args *a, const gradient<T> &b)
{
	launch(a, dim3(cuda_blocks(z.rows * together, BLOCK_THREADS)), BLOCK_THREADS, inner_products<each, together, T>,
	       z, b);
}

/* Row or column operands of the two products of a gradient. first: q or k; second: dy or v. */
template <typename T> struct side {
	const T *first, *second;
	int64_t first_step, second_step;
};

/* by_key: the block's own rows are keys and the others queries; else the other way round. */
template <bool by_key, typename T>
__device__ inline void pick_gradient_sides(const struct attention_sizes &z, const struct spot &s, const gradient<T> &b,
					   side<T> &mine, side<T> &other)
{
	const T *qkv = b.qkv + qkv_at(z, s, 0);
	const side<T> queries = { qkv, b.dy + y_at(z, s, 0), 3 * z.c, z.c };
	const side<T> keys = { qkv + z.c, qkv + 2 * z.c, 3 * z.c, 3 * z.c };

	mine = by_key ? keys : queries;
	other = by_key ? queries : keys;
}

/* ---- tiles on tensor cores (flash_cuda.cu) ---- */

/* Returns true for 16-bit types and head sizes 8, 16, … 128. Operands must be aligned to 16 bytes. */
bool flash_takes(const struct attention_sizes &z, enum dtype type);

void flash_forward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a);

/* workspace: a float per head and position. */
void flash_backward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a);

/* ---- tiles in f32 (tiled_cuda.cu) ---- */

/* Returns true for f32 and head sizes 4, 8, … 128. Operands must be aligned to 16 bytes. */
bool tiled_takes(const struct attention_sizes &z, enum dtype type);

void tiled_forward(const struct attention_sizes &z, const struct kernel_args *a);

/* workspace: a float per head and position. */
void tiled_backward(const struct attention_sizes &z, const struct kernel_args *a);

#endif
