/* crc32c.c: SSE4.2's crc32 instruction, or a table of 8 x 256 made on first use ("slicing by 8"). An instruction takes
 * three cycles, and one can begin in each: three lanes of the bytes are summed at once and their sums joined. */
#include "tracker/base/crc32c.h"

#include <pthread.h>
#include <string.h>

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
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_instruction(~crc, bytes, n);
#endif
	return ~crc_table(~crc, bytes, n);
}

uint32_t crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
