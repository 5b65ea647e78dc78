/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_block.h: the inner product of bf16 convolutions: up to 32 x 32 f32 sums of products of pairs of bf16 terms. Two
 * engines compute it: the tile registers of AMX, and the dot products of AVX512_BF16. Plain C emulates either
 * instruction on processors without it, so tests run the same loops on any machine. */
#ifndef DPT_BACKENDS_CPU_BF16_CONV_BF16_BLOCK_H
#define DPT_BACKENDS_CPU_BF16_CONV_BF16_BLOCK_H

#include "trainer/backends/cpu/own_convs.h"

#define BLOCK_SIDE 16	 /* rows of a tile, and columns of its sums */
#define BLOCK_PANEL 32	 /* rows or columns of a block */
#define BLOCK_TERMS 32	 /* terms of a step, in 16 pairs */
#define BLOCK_LINE 64	 /* bytes of a row's terms in a step, and of a pair of terms of 16 columns */
#define BLOCK_SUMS 1024	 /* floats of a block */
#define BLOCK_TILE 256	 /* floats of one of its tiles */

/* a[i]: 16 rows of terms, a_row bytes apart. b[j]: 16 pairs of terms of 16 columns, b_row bytes apart. a[1] is NULL in
 * a block of 16 rows, b[1] in one of 16 columns. Step k reads a[i] + a_at[k] and b[j] + b_at[k]. sums: [2 tiles of
 * rows][2 tiles of columns][16][16]; with `add` the products are added to the present sums. Absent tiles are left
 * unchanged. */
struct bf16_block {
	const char *a[2], *b[2];
	int64_t a_row, b_row, steps;
	const int32_t *a_at, *b_at;
	float *sums;
	bool add;
};

typedef void block_fn(const struct bf16_block *o);

block_fn *block_pick(const struct cpu_module *m, enum bf16_engine engine);

#endif
