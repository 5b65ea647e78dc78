/* SPDX-License-Identifier: Apache-2.0 */
/* amx.c: asks Linux for the tile registers and multiplies blocks of 32 x 32 in them. */
#include "trainer/backends/cpu/amx.h"

#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "trainer/ops/cast/float16.h"

#define ROWS 16	 /* rows of a tile, and columns of its sums */
#define LINE 64	 /* bytes of a row */
#define TERMS 32 /* terms of a row of a left operand */

static const char *byte_offset(const void *p, int64_t bytes)
{
	return (const char *)p + bytes;
}

void amx_add_plainly(struct amx_side a, struct amx_side b, float *sums, int64_t sums_row)
{
	for (int i = 0; i < ROWS; i++) {
		const uint16_t *x = (const uint16_t *)byte_offset(a.tile, i * a.row);
		float *to = sums + i * sums_row / (int64_t)sizeof(float);

		for (int p = 0; p < TERMS / 2; p++) {
			const uint16_t *y = (const uint16_t *)byte_offset(b.tile, p * b.row);

			for (int j = 0; j < ROWS; j++) {
				to[j] += bf16_to_float(x[2 * p]) * bf16_to_float(y[2 * j]);
				to[j] += bf16_to_float(x[2 * p + 1]) * bf16_to_float(y[2 * j + 1]);
			}
		}
	}
}

static void multiply_plain_tiles(const struct amx_product *p)
{
	const int64_t c_row = p->c_row / (int64_t)sizeof(float);

	for (int tile = 0; tile < 4; tile++) {
		const int64_t rows = tile / 2 * ROWS, columns = tile % 2 * ROWS;
		float *c = p->c + rows * c_row + columns;

		for (int i = 0; !p->add && i < ROWS; i++)
			memset(c + i * c_row, 0, LINE);
		for (int64_t k = 0; k < p->steps; k++) {
			const struct amx_side a = { byte_offset(p->a, rows * p->a_row + k * LINE), p->a_row };
			const struct amx_side b = { byte_offset(p->b, k * ROWS * p->b_row + columns * 4), p->b_row };

			amx_add_plainly(a, b, c, p->c_row);
		}
	}
}

#if defined(__x86_64__)
#define ARCH_REQ_XCOMP_PERM 0x1023 /* asm/prctl.h */
#define XFEATURE_TILE_DATA 18

/* Linux grants the registers, 8 KiB per thread, only to processes that request them. */
static bool request_amx_tiles(void)
{
	unsigned r[4];

	if (!__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[3] >> 22 & 1) || !(r[3] >> 24 & 1))
		return false;
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0;
}

struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

/* Constant, because the compiler assumes that the intrinsic reads only the first bytes. */
static const struct tile_config config = { .palette = 1,
					   .row_bytes = { LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE },
					   .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

void amx_begin(enum cpu_tiles how)
{
	if (how == CPU_TILES_AMX)
		_tile_loadconfig(&config);
}

void amx_end(enum cpu_tiles how)
{
	if (how == CPU_TILES_AMX)
		_tile_release();
}

/* Registers 0 to 3 hold sums, 4 and 5 tiles of a, 6 and 7 of b. */
static void multiply_amx_tiles(const struct amx_product *p)
{
	const char *a = p->a, *b = p->b;
	char *c = (char *)p->c, *lower = c + ROWS * p->c_row;

	if (p->add) {
		_tile_loadd(0, c, p->c_row);
		_tile_loadd(1, c + LINE, p->c_row);
		_tile_loadd(2, lower, p->c_row);
		_tile_loadd(3, lower + LINE, p->c_row);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
	for (int64_t k = 0; k < p->steps; k++, a += LINE, b += ROWS * p->b_row) {
		_tile_loadd(4, a, p->a_row);
		_tile_loadd(6, b, p->b_row);
		_tile_loadd(7, b + LINE, p->b_row);
		_tile_dpbf16ps(0, 4, 6);
		_tile_loadd(5, a + ROWS * p->a_row, p->a_row);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, c, p->c_row);
	_tile_stored(1, c + LINE, p->c_row);
	_tile_stored(2, lower, p->c_row);
	_tile_stored(3, lower + LINE, p->c_row);
}

#pragma GCC pop_options
#else
static bool request_amx_tiles(void)
{
	return false;
}

void amx_begin(enum cpu_tiles how)
{
	(void)how;
}

void amx_end(enum cpu_tiles how)
{
	(void)how;
}

static void multiply_amx_tiles(const struct amx_product *p)
{
	multiply_plain_tiles(p);
}
#endif

void amx_multiply(enum cpu_tiles how, const struct amx_product *p)
{
	if (how == CPU_TILES_AMX)
		multiply_amx_tiles(p);
	else
		multiply_plain_tiles(p);
}

enum cpu_tiles cpu_tiles_detect(enum cpu_isa isa)
{
	const char *value = getenv("DPTRAIN_CPU_TILES");

	if (value && strcmp(value, "no") == 0)
		return CPU_TILES_NONE;
	if (value && strcmp(value, "emulate") == 0)
		return CPU_TILES_EMULATED;
	return isa == CPU_AVX512_BF16 && request_amx_tiles() ? CPU_TILES_AMX : CPU_TILES_NONE;
}
