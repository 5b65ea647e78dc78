/* crc32c.c: SSE4.2's crc32 instruction, or a table of 8 x 256 made on first use ("slicing by 8"). */
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
__attribute__((target("sse4.2"))) static uint32_t crc_instruction(uint32_t c, const unsigned char *p, size_t n)
{
	uint64_t wide = c;

	for (; n >= 8; p += 8, n -= 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		wide = __builtin_ia32_crc32di(wide, v);
	}
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
