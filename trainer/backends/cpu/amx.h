/* SPDX-License-Identifier: Apache-2.0 */
/* amx.h: the tile registers of AMX (Intel's instruction set reference: TDPBF16PS), and plain loops that emulate them. A
 * tile is 16 rows of 64 bytes: 16 floats of sums, 16 pairs of bf16 terms of a left operand, or the pairs of 16 columns
 * of a right operand. Handles a few tiles at a time; larger matrices are the caller's business. */
#ifndef DPT_BACKENDS_CPU_AMX_H
#define DPT_BACKENDS_CPU_AMX_H

#include "trainer/backends/cpu/cpu.h"

/* Returns how this process computes in tiles. The hardware way needs bf16 tiles in the processor and permission from
 * the system. $DPTRAIN_CPU_TILES=no forbids it; =emulate uses plain loops instead, for tests and comparisons. */
enum cpu_tiles cpu_tiles_detect(enum cpu_isa isa);

/* Configure the registers before a thread's products, and release them after. */
void amx_begin(enum cpu_tiles how);
void amx_end(enum cpu_tiles how);

/* Adds the product of one tile of each side to one tile of sums, in plain loops. row, sums_row: bytes between rows. */
struct amx_side {
	const void *tile;
	int64_t row;
};

void amx_add_plainly(struct amx_side a, struct amx_side b, float *sums, int64_t sums_row);

/* c [32][32] (+)= a b over 32 * steps terms. a: 32 rows of pairs of terms; b: 16 rows per step, each with a pair of
 * terms for 32 columns. a_row, b_row, c_row: bytes between rows. */
struct amx_product {
	const void *a, *b;
	int64_t a_row, b_row, steps;
	float *c;
	int64_t c_row;
	bool add;
};

void amx_multiply(enum cpu_tiles how, const struct amx_product *p);

#endif
