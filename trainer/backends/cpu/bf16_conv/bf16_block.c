/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_block.c: both engines of bf16_plan.h, and their emulation in plain C. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/bf16_conv/bf16_plan.h"

#include <stdlib.h>

#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/cast/float16.h"

#define CPU_LANES 16
#define CPU_BODY "trainer/backends/cpu/bf16_conv/bf16_block.c"
#include "trainer/backends/cpu/each.h"

/* ---- tiles ---- */

struct plain_tile {
	unsigned char row[BLOCK_SIDE][BLOCK_LINE];
};

static void load_plain_tile(struct plain_tile *t, const void *from, int64_t row)
{
	for (int64_t i = 0; i < BLOCK_SIDE; i++)
		memcpy(t->row[i], (const char *)from + i * row, BLOCK_LINE);
}

static void store_plain_tile(const struct plain_tile *t, void *to, int64_t row)
{
	for (int64_t i = 0; i < BLOCK_SIDE; i++)
		memcpy((char *)to + i * row, t->row[i], BLOCK_LINE);
}

/* TDPBF16PS: multiplies a pair of terms of each row with the pairs of all columns. */
static void dot_plain_tiles(struct plain_tile *sums, const struct plain_tile *a, const struct plain_tile *b)
{
	for (int m = 0; m < BLOCK_SIDE; m++) {
		v16 sum;

		memcpy(&sum, sums->row[m], sizeof(sum));
		for (int k = 0; k < BLOCK_SIDE; k++) {
			uint16_t x[2];
			v16u y;

			memcpy(x, a->row[m] + k * sizeof(x), sizeof(x));
			memcpy(&y, b->row[k], sizeof(y));
			sum += (v16)(y << 16) * bf16_to_float(x[0]);
			sum += (v16)(y & 0xffff0000u) * bf16_to_float(x[1]);
		}
		memcpy(sums->row[m], &sum, sizeof(sum));
	}
}

#define TILE_FILE(name) name##_plain
#define TILE_DECLARE struct plain_tile tile[8];
#define TILE_ZERO(t) memset(&tile[t], 0, sizeof(tile[t]))
#define TILE_LOAD(t, from, row_bytes) load_plain_tile(&tile[t], from, row_bytes)
#define TILE_STORE(t, to, row_bytes) store_plain_tile(&tile[t], to, row_bytes)
#define TILE_DOT(sums, rows, columns) dot_plain_tiles(&tile[sums], &tile[rows], &tile[columns])
#include "trainer/backends/cpu/bf16_conv/bf16_block_tiles.h"
#undef TILE_FILE
#undef TILE_DECLARE
#undef TILE_ZERO
#undef TILE_LOAD
#undef TILE_STORE
#undef TILE_DOT

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")
#define TILE_FILE(name) name##_amx
#define TILE_DECLARE
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from, row_bytes) _tile_loadd(t, from, row_bytes)
#define TILE_STORE(t, to, row_bytes) _tile_stored(t, to, row_bytes)
#define TILE_DOT(sums, rows, columns) _tile_dpbf16ps(sums, rows, columns)
#include "trainer/backends/cpu/bf16_conv/bf16_block_tiles.h"
#pragma GCC pop_options
#else
#define block_in_tiles_amx block_in_tiles_plain
#endif

/* ---- choice ---- */

bool block_asks_plain_dots(void)
{
	const char *value = getenv("DPTRAIN_CPU_DOTS");

	return value && strcmp(value, "emulate") == 0;
}

bool block_has(const struct cpu_module *m, enum bf16_engine engine)
{
	return engine == BF16_TILES ? m->tiles != CPU_TILES_NONE : m->isa == CPU_AVX512_BF16 || m->plain_dots;
}

block_fn *block_pick(const struct cpu_module *m, enum bf16_engine engine)
{
	static block_fn *const dots[] = {
#if defined(__x86_64__)
		block_in_dots_base, block_in_dots_avx2, block_in_dots_avx512, block_in_dots_bf16
#else
		block_in_dots_base, block_in_dots_base, block_in_dots_base, block_in_dots_base
#endif
	};

	if (engine == BF16_DOTS)
		return dots[m->isa];
	return m->tiles == CPU_TILES_AMX ? block_in_tiles_amx : block_in_tiles_plain;
}

#else

#define ROWS_AT_ONCE 8 /* with 2 vectors of columns this makes 16 sums, enough to hide the latency of a dot product */

/* VDPBF16PS: adds the products of both terms of a pair. */
VEC_INLINE v16 V(add_dots)(v16 sum, v16u a, v16u b)
{
#ifdef CPU_HAS_BF16
	return (v16)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
	sum += (v16)(a << 16) * (v16)(b << 16);
	return sum + (v16)(a & 0xffff0000u) * (v16)(b & 0xffff0000u);
#endif
}

VEC_INLINE v16u V(load_pairs)(const char *from)
{
	v16u v;

	memcpy(&v, from, sizeof(v));
	return v;
}

/* Computes ROWS_AT_ONCE rows, starting at a. */
VEC_INLINE void V(add_block_rows)(const struct bf16_block *o, const char *a, float *sums, const int columns)
{
	v16 acc[ROWS_AT_ONCE * 2];

#pragma GCC unroll 16
	for (int i = 0; i < ROWS_AT_ONCE * columns; i++)
		acc[i] = o->add ? vload(sums, i / columns * BLOCK_SIDE + i % columns * BLOCK_TILE, false) : vset(0);
	for (int64_t k = 0; k < o->steps; k++) {
		const char *terms = a + o->a_at[k], *first = o->b[0] + o->b_at[k];
		const char *second = columns > 1 ? o->b[1] + o->b_at[k] : first;

		for (int p = 0; p < BLOCK_SIDE; p++, terms += 4, first += o->b_row, second += o->b_row) {
			const v16u b[2] = { V(load_pairs)(first), columns > 1 ? V(load_pairs)(second) : (v16u){ 0 } };

#pragma GCC unroll 8
			for (int r = 0; r < ROWS_AT_ONCE; r++) {
				uint32_t pair;

				memcpy(&pair, terms + r * o->a_row, sizeof(pair));
#pragma GCC unroll 2
				for (int j = 0; j < columns; j++)
					acc[r * columns + j] =
						V(add_dots)(acc[r * columns + j], pair - (v16u){ 0 }, b[j]);
			}
		}
	}
#pragma GCC unroll 16
	for (int i = 0; i < ROWS_AT_ONCE * columns; i++)
		vstore(sums, i / columns * BLOCK_SIDE + i % columns * BLOCK_TILE, acc[i], false);
}

static void V(block_in_dots)(const struct bf16_block *o)
{
	for (int r = 0; r < (o->a[1] ? 2 : 1) * BLOCK_SIDE; r += ROWS_AT_ONCE) {
		const char *a = o->a[r / BLOCK_SIDE] + r % BLOCK_SIDE * o->a_row;
		float *sums = o->sums + r / BLOCK_SIDE * 2 * BLOCK_TILE + r % BLOCK_SIDE * BLOCK_SIDE;

		o->b[1] ? V(add_block_rows)(o, a, sums, 2) : V(add_block_rows)(o, a, sums, 1);
	}
}

#endif
