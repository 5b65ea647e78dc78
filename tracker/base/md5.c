/* SPDX-License-Identifier: Apache-2.0 */
/* md5.c: MD5 by the text of RFC 1321, section 3. */
#include "tracker/base/md5.h"

#include <string.h>

#include "tracker/base/little.h"

#define MD5_BLOCK 64

static const unsigned char rotations[4][4] = {
	{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

void md5_init(struct md5 *m)
{
	*m = (struct md5){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 } };
}

static uint32_t mix_md5_round(int round, const uint32_t v[4])
{
	switch (round) {
	case 0:
		return (v[1] & v[2]) | (~v[1] & v[3]);
	case 1:
		return (v[1] & v[3]) | (v[2] & ~v[3]);
	case 2:
		return v[1] ^ v[2] ^ v[3];
	default:
		return v[2] ^ (v[1] | ~v[3]);
	}
}

/* The table T of section 3.4: the whole part of 2^32 abs(sin(i + 1)). */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
	0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
	0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
	0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
	0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static void hash_md5_block(struct md5 *m, const unsigned char *at)
{
	static const int step[4] = { 1, 5, 3, 7 }, first[4] = { 0, 1, 5, 0 };
	uint32_t v[4];

	memcpy(v, m->h, sizeof(v));
	for (int i = 0; i < 64; i++) {
		int round = i / 16, rotation = rotations[round][i % 4];
		int place = (first[round] + step[round] * i) % 16;
		uint32_t sum = v[0] + mix_md5_round(round, v) + sines[i] + little_get_u32(at + 4 * place);

		v[0] = v[3];
		v[3] = v[2];
		v[2] = v[1];
		v[1] += sum << rotation | sum >> (32 - rotation);
	}
	for (int i = 0; i < 4; i++)
		m->h[i] += v[i];
}

void md5_add(struct md5 *m, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	size_t have = m->bytes % MD5_BLOCK;

	m->bytes += n;
	if (have + n < MD5_BLOCK) {
		memcpy(m->rest + have, at, n);
		return;
	}
	if (have) {
		memcpy(m->rest + have, at, MD5_BLOCK - have);
		hash_md5_block(m, m->rest);
		at += MD5_BLOCK - have;
		n -= MD5_BLOCK - have;
	}
	for (; n >= MD5_BLOCK; at += MD5_BLOCK, n -= MD5_BLOCK)
		hash_md5_block(m, at);
	memcpy(m->rest, at, n);
}

void md5_end(struct md5 *m, unsigned char ret[16])
{
	unsigned char bits[8], pad[MD5_BLOCK] = { 0x80 };
	uint64_t n = m->bytes;

	little_put_u64(bits, n * 8);
	md5_add(m, pad, 1 + (MD5_BLOCK + 55 - n % MD5_BLOCK) % MD5_BLOCK);
	md5_add(m, bits, 8);
	for (int i = 0; i < 4; i++)
		little_put_u32(ret + 4 * i, m->h[i]);
}
