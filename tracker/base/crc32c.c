/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c: uses SSE4.2's crc32 instruction, or a table of 8 x 256 built on first use ("slicing by 8"). The instruction
 * has a latency of three cycles and a throughput of one, so three lanes of the bytes are summed at once and their sums
 * joined. With VPCLMULQDQ and AVX-512, 256 bytes are folded into the next 256 instead ("Fast CRC Computation for
 * Generic Polynomials Using PCLMULQDQ Instruction", Gopal and others, Intel 2009). */
#include "tracker/base/crc32c.h"

#include <pthread.h>
#include <string.h>

#include "tracker/base/x86.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0x82F63B78u

static uint32_t slices[8][256];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void make_crc_slices(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
		slices[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int s = 1; s < 8; s++)
			slices[s][i] = slices[s - 1][i] >> 8 ^ slices[0][slices[s - 1][i] & 0xff];
}

static uint32_t crc_by_table(uint32_t c, const unsigned char *p, size_t n)
{
	pthread_once(&slices_once, make_crc_slices);
	for (; n >= 8; p += 8, n -= 8) {
		uint32_t lo = c ^ (p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);

		c = slices[7][lo & 0xff] ^ slices[6][lo >> 8 & 0xff] ^ slices[5][lo >> 16 & 0xff] ^
		    slices[4][lo >> 24] ^ slices[3][p[4]] ^ slices[2][p[5]] ^ slices[1][p[6]] ^ slices[0][p[7]];
	}
	while (n--)
		c = c >> 8 ^ slices[0][(c ^ *p++) & 0xff];
	return c;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define LANE ((size_t)2048)

static uint32_t lane_shift[4][256]; /* [k][b]: the CRC after LANE zero bytes when it was b << 8k before */
static pthread_once_t lane_shift_once = PTHREAD_ONCE_INIT;

/* A CRC is linear in its bits, so the table is built from single bits. */
static void make_lane_shift(void)
{
	static const unsigned char zeros[LANE];

	for (int k = 0; k < 4; k++)
		for (uint32_t bit = 1; bit < 256; bit <<= 1) {
			uint32_t made = crc_by_table(bit << 8 * k, zeros, LANE);

			for (uint32_t i = 0; i < 256; i++)
				lane_shift[k][i] ^= i & bit ? made : 0;
		}
}

static uint32_t shift_over_lane(uint32_t c)
{
	return lane_shift[0][c & 0xff] ^ lane_shift[1][c >> 8 & 0xff] ^ lane_shift[2][c >> 16 & 0xff] ^
	       lane_shift[3][c >> 24];
}

static inline uint64_t load_u64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

__attribute__((target("sse4.2,crc32"))) static uint32_t crc_three_lanes(uint32_t c, const unsigned char *p)
{
	uint64_t lane[3] = { c, 0, 0 };

	for (size_t i = 0; i < LANE; i += 8) {
		lane[0] = __builtin_ia32_crc32di(lane[0], load_u64(p + i));
		lane[1] = __builtin_ia32_crc32di(lane[1], load_u64(p + LANE + i));
		lane[2] = __builtin_ia32_crc32di(lane[2], load_u64(p + 2 * LANE + i));
	}
	return shift_over_lane(shift_over_lane((uint32_t)lane[0]) ^ (uint32_t)lane[1]) ^ (uint32_t)lane[2];
}

__attribute__((target("sse4.2,crc32"))) static uint32_t crc_by_instruction(uint32_t c, const unsigned char *p, size_t n)
{
	uint64_t wide;

	if (n >= 3 * LANE)
		pthread_once(&lane_shift_once, make_lane_shift);
	for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE)
		c = crc_three_lanes(c, p);
	wide = c;
	for (; n >= 8; p += 8, n -= 8)
		wide = __builtin_ia32_crc32di(wide, load_u64(p));
	c = (uint32_t)wide;
	while (n--)
		c = __builtin_ia32_crc32qi(c, *p++);
	return c;
}

#define FOLDED ((size_t)256) /* bytes folded at once */
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ <= 20 /* these ask for the width by name */
#define FOLDS __attribute__((target("sse4.2,crc32,avx512f,evex512,pclmul,vpclmulqdq")))
#else
#define FOLDS __attribute__((target("sse4.2,crc32,avx512f,pclmul,vpclmulqdq")))
#endif

static uint64_t fold_by[3][2]; /* multipliers to fold by FOLDED, 64 and 16 bytes, for the lower and upper 8 of 16 */
static pthread_once_t fold_once = PTHREAD_ONCE_INIT;

/* x^n modulo the polynomial, with the lowest power in the highest bit. */
static uint32_t power_of_x(int n)
{
	uint32_t c = 1u << 31;

	while (n--)
		c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
	return c;
}

static void make_fold_factors(void)
{
	static const int bytes[] = { FOLDED, 64, 16 };

	for (int i = 0; i < 3; i++) {
		fold_by[i][0] = power_of_x(8 * bytes[i] + 31);
		fold_by[i][1] = power_of_x(8 * bytes[i] - 33);
	}
}

FOLDS static __m512i fold_crc_block(__m512i x, __m512i by, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(x, by, 0x00), high = _mm512_clmulepi64_epi128(x, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of three values */
}

FOLDS static __m128i load_fold_factors(int i)
{
	return _mm_set_epi64x((long long)fold_by[i][1], (long long)fold_by[i][0]);
}

/* The CRC of 64 bytes that represent all bytes before them. */
FOLDS static uint32_t reduce_folded(__m512i x)
{
	__m128i part[4], all, by = load_fold_factors(2);
	uint64_t sum;

	_mm512_storeu_si512(part, x);
	all = part[0];
	for (int i = 1; i < 4; i++)
		all = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(all, by, 0x00),
						  _mm_clmulepi64_si128(all, by, 0x11)), part[i]);
	sum = __builtin_ia32_crc32di(0, (uint64_t)_mm_extract_epi64(all, 0));
	return (uint32_t)__builtin_ia32_crc32di(sum, (uint64_t)_mm_extract_epi64(all, 1));
}

/* The CRC of n >= FOLDED bytes, a multiple of FOLDED. */
FOLDS static uint32_t crc_by_folding(uint32_t c, const unsigned char *p, size_t n)
{
	__m512i x[4], by = _mm512_broadcast_i32x4(load_fold_factors(0));

	for (int i = 0; i < 4; i++)
		x[i] = _mm512_loadu_si512(p + 64 * i);
	x[0] = _mm512_xor_si512(x[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, c));
	for (size_t at = FOLDED; at < n; at += FOLDED)
#pragma GCC unroll 4 /* else x is kept in memory */
		for (int i = 0; i < 4; i++)
			x[i] = fold_crc_block(x[i], by, _mm512_loadu_si512(p + at + 64 * i));
	by = _mm512_broadcast_i32x4(load_fold_factors(1));
	for (int i = 1; i < 4; i++)
		x[i] = fold_crc_block(x[i - 1], by, x[i]);
	return reduce_folded(x[3]);
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
	const unsigned char *p = bytes;
	size_t whole = n >= 4 * FOLDED && x86_has(X86_FOLD) ? n / FOLDED * FOLDED : 0;

	if (whole) {
		pthread_once(&fold_once, make_fold_factors);
		crc = ~crc_by_folding(~crc, p, whole);
	}
	if (x86_has(X86_CRC32))
		return ~crc_by_instruction(~crc, p + whole, n - whole);
#endif
	return ~crc_by_table(~crc, bytes, n);
}

uint32_t crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
