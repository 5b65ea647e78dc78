/* SPDX-License-Identifier: Apache-2.0 */
/* normal.c: normal draws in f64 by polynomials. They differ from the C library's functions in the last of 53 bits.
 * Where that could round to another float, rng_normal draws the value instead, so the result is always
 * bit-identical. */
#include "trainer/graph/rng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) && !defined(__clang__) /* clang cannot set a target for part of a file */
#define HAVE_LANES 1
#include <immintrin.h>
#endif

#define PIECE 4096  /* draws that are checked for doubtful values together */
#define DOUBT 1e-14 /* relative to the factor of the cosine; the two methods differ by less than 3e-15 of it */
#define TWO_52_BITS 0x4330000000000000u
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu

typedef bool draw_fn(float *to, int64_t n, struct rng_key key, uint64_t first, double scale);

#ifdef HAVE_LANES
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define LANES(name) name##_avx2
#define LANES_BYTES 32
#define LANES_STEP { 0, 1, 2, 3 }
#define LANES_MUL(x, y) ((u64_avx2)_mm256_mul_epu32((__m256i)(x), (__m256i)(y)))
#define LANES_SQRT(x) ((f64_avx2)_mm256_sqrt_pd(x))
#include "trainer/graph/normal_lanes.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512dq,prefer-vector-width=512")
#define LANES(name) name##_avx512
#define LANES_BYTES 64
#define LANES_STEP { 0, 1, 2, 3, 4, 5, 6, 7 }
#define LANES_MUL(x, y) ((u64_avx512)_mm512_mul_epu32((__m512i)(x), (__m512i)(y)))
#define LANES_SQRT(x) ((f64_avx512)_mm512_sqrt_pd(x))
#include "trainer/graph/normal_lanes.h"
#pragma GCC pop_options

/* $DPTRAIN_CPU_ISA limits the instruction set, as in the cpu backend. */
static draw_fn *pick_draw_function(void)
{
	const char *isa = getenv("DPTRAIN_CPU_ISA");

	if ((isa && !strcmp(isa, "base")) || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return NULL;
	if ((isa && !strcmp(isa, "avx2")) || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq"))
		return draw_avx2;
	return draw_avx512;
}
#else
static draw_fn *pick_draw_function(void)
{
	return NULL;
}
#endif

static float draw_normal_scalar(struct rng_key key, uint64_t counter, double scale)
{
	return (float)(scale * rng_normal(key, counter));
}

void normal_fill(float *to, int64_t n, struct rng_key key, uint64_t first, double scale)
{
	draw_fn *draw = pick_draw_function();
	int64_t i = 0;

	while (draw && n - i >= 8) {
		int64_t piece = n - i < PIECE ? (n - i) / 8 * 8 : PIECE;

		if (draw(to + i, piece, key, first + (uint64_t)i, scale))
			for (int64_t k = i; k < i + piece; k++)
				if (to[k] != to[k])
					to[k] = draw_normal_scalar(key, first + (uint64_t)k, scale);
		i += piece;
	}
	for (; i < n; i++)
		to[i] = draw_normal_scalar(key, first + (uint64_t)i, scale);
}
