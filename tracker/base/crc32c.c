/* crc32c.c: SSE4.2's crc32 instruction, or a table of 8 x 256 made on first use ("slicing by 8"). An instruction takes
 * three cycles, and one can begin in each: three lanes of the bytes are summed at once and their sums joined. Where the
 * processor multiplies polynomials 64 bytes at once, 256 bytes are folded into the next 256 instead ("Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", Gopal and others, Intel 2009). */
#include "tracker/base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0x82F63B78u

static uint32_t slices[8][256];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void slices_make(void)
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

static uint32_t crc_table(uint32_t c, const unsigned char *p, size_t n)
{
	pthread_once(&slices_once, slices_make);
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

static uint32_t behind_lane[4][256]; /* [k][b]: what LANE bytes of zeros make of a sum whose k-th byte is b */
static pthread_once_t behind_once = PTHREAD_ONCE_INIT;

/* A sum is linear in its bits. */
static void behind_make(void)
{
	static const unsigned char zeros[LANE];

	for (int k = 0; k < 4; k++)
		for (uint32_t bit = 1; bit < 256; bit <<= 1) {
			uint32_t made = crc_table(bit << 8 * k, zeros, LANE);

			for (uint32_t i = 0; i < 256; i++)
				behind_lane[k][i] ^= i & bit ? made : 0;
		}
}

static uint32_t behind(uint32_t c)
{
	return behind_lane[0][c & 0xff] ^ behind_lane[1][c >> 8 & 0xff] ^ behind_lane[2][c >> 16 & 0xff] ^
	       behind_lane[3][c >> 24];
}

static inline uint64_t load(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

__attribute__((target("sse4.2"))) static uint32_t crc_lanes(uint32_t c, const unsigned char *p)
{
	uint64_t lane[3] = { c, 0, 0 };

	for (size_t i = 0; i < LANE; i += 8) {
		lane[0] = __builtin_ia32_crc32di(lane[0], load(p + i));
		lane[1] = __builtin_ia32_crc32di(lane[1], load(p + LANE + i));
		lane[2] = __builtin_ia32_crc32di(lane[2], load(p + 2 * LANE + i));
	}
	return behind(behind((uint32_t)lane[0]) ^ (uint32_t)lane[1]) ^ (uint32_t)lane[2];
}

__attribute__((target("sse4.2"))) static uint32_t crc_instruction(uint32_t c, const unsigned char *p, size_t n)
{
	uint64_t wide;

	if (n >= 3 * LANE)
		pthread_once(&behind_once, behind_make);
	for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE)
		c = crc_lanes(c, p);
	wide = c;
	for (; n >= 8; p += 8, n -= 8)
		wide = __builtin_ia32_crc32di(wide, load(p));
	c = (uint32_t)wide;
	while (n--)
		c = __builtin_ia32_crc32qi(c, *p++);
	return c;
}

#define FOLDED ((size_t)256) /* bytes that are carried to the next ones at once */
#define FOLDS __attribute__((target("sse4.2,avx512f,pclmul,vpclmulqdq")))

static uint64_t fold_by[3][2]; /* by FOLDED, 64 and 16 bytes: for the lower and the upper 8 of 16 bytes */
static pthread_once_t fold_once = PTHREAD_ONCE_INIT;

/* x^n modulo the polynomial, the lowest power in the highest bit. */
static uint32_t power(int n)
{
	uint32_t c = 1u << 31;

	while (n--)
		c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
	return c;
}

static void fold_make(void)
{
	static const int bytes[] = { FOLDED, 64, 16 };

	for (int i = 0; i < 3; i++) {
		fold_by[i][0] = power(8 * bytes[i] + 31);
		fold_by[i][1] = power(8 * bytes[i] - 33);
	}
}

FOLDS static __m512i fold(__m512i x, __m512i by, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(x, by, 0x00), high = _mm512_clmulepi64_epi128(x, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of three */
}

FOLDS static __m128i factors(int i)
{
	return _mm_set_epi64x((long long)fold_by[i][1], (long long)fold_by[i][0]);
}

/* Of 64 bytes that stand for all before them. */
FOLDS static uint32_t fold_end(__m512i x)
{
	__m128i part[4], all, by = factors(2);
	uint64_t sum;

	_mm512_storeu_si512(part, x);
	all = part[0];
	for (int i = 1; i < 4; i++)
		all = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(all, by, 0x00),
						  _mm_clmulepi64_si128(all, by, 0x11)), part[i]);
	sum = __builtin_ia32_crc32di(0, (uint64_t)_mm_extract_epi64(all, 0));
	return (uint32_t)__builtin_ia32_crc32di(sum, (uint64_t)_mm_extract_epi64(all, 1));
}

/* Of n >= FOLDED bytes, a multiple of it. */
FOLDS static uint32_t crc_folded(uint32_t c, const unsigned char *p, size_t n)
{
	__m512i x[4], by = _mm512_broadcast_i32x4(factors(0));

	for (int i = 0; i < 4; i++)
		x[i] = _mm512_loadu_si512(p + 64 * i);
	x[0] = _mm512_xor_si512(x[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, c));
	for (size_t at = FOLDED; at < n; at += FOLDED)
#pragma GCC unroll 4 /* else they lie in memory */
		for (int i = 0; i < 4; i++)
			x[i] = fold(x[i], by, _mm512_loadu_si512(p + at + 64 * i));
	by = _mm512_broadcast_i32x4(factors(1));
	for (int i = 1; i < 4; i++)
		x[i] = fold(x[i - 1], by, x[i]);
	return fold_end(x[3]);
}

static bool can_fold(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f");
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
	const unsigned char *p = bytes;
	size_t whole = n >= 4 * FOLDED && can_fold() ? n / FOLDED * FOLDED : 0;

	if (whole) {
		pthread_once(&fold_once, fold_make);
		crc = ~crc_folded(~crc, p, whole);
	}
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_instruction(~crc, p + whole, n - whole);
#endif
	return ~crc_table(~crc, bytes, n);
}

uint32_t crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
