/* attention_cuda.h: what the ways of computing attention on a GPU share: where heads lie and what dropout does to a
 * probability; and the ways by tiles. */
#ifndef DPT_OPS_ATTENTION_CUDA_H
#define DPT_OPS_ATTENTION_CUDA_H

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/attention/attention.h"
}

struct attention_sizes {
	int64_t rows; /* heads of all positions */
	int c, d, seq, heads;
	bool drops;
	struct dropout_attr dropout;
};

static inline struct attention_sizes attention_sizes_of(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = static_cast<const struct attention_attr *>(n->attr);
	const int c = (int)qkv->shape.dim[1] / 3;

	return { qkv->shape.dim[0] * a->heads, c, c / (int)a->heads, (int)a->seq, (int)a->heads, a->dropout.p > 0,
		 a->dropout };
}

/* One head at one position: `i` of its sequence. */
struct spot {
	int64_t sequence, head; /* numbers of the sequence, and of the head within it */
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

__device__ inline int64_t lse_at(const struct attention_sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * z.heads + s.head;
}

/* What dropout does to the probability of key j for query i. */
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

__device__ inline struct mask mask_of(const struct attention_sizes &z, const struct spot &s, const step_page *page)
{
	struct mask m = { {}, 0, z.seq, z.drops };

	if (z.drops)
		m.draw = dropout_draw(&z.dropout, page);
	m.first = (uint64_t)(s.sequence * z.heads + s.head) * (uint64_t)z.seq * (uint64_t)z.seq;
	return m;
}

/* ---- by tiles, on tensor cores (flash_cuda.cu) ---- */

/* 16 bits, heads of 8, 16, … 128 numbers. Operands must begin at multiples of 16 bytes. */
bool flash_takes(const struct attention_sizes &z, enum dtype type);

void flash_forward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a);

/* workspace: a float for each head of each position. */
void flash_backward(const struct attention_sizes &z, enum dtype type, const struct kernel_args *a);

/* ---- by tiles, in f32 (tiled_cuda.cu) ---- */

/* f32, heads of 4, 8, … 128 numbers. Operands must begin at multiples of 16 bytes. */
bool tiled_takes(const struct attention_sizes &z, enum dtype type);

void tiled_forward(const struct attention_sizes &z, const struct kernel_args *a);

#endif
