/* sha256.c: SHA-256 ; constants are the fractional parts of roots of the first primes. */
#include "tracker/base/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t v, int by)
{
	return v >> by | v << (32 - by);
}

static void mix(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], a[8], t1, t2;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
			p[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(a, h, sizeof a);
	for (i = 0; i < 64; i++) {
		t1 = a[7] + (turn(a[4], 6) ^ turn(a[4], 11) ^ turn(a[4], 25)) + ((a[4] & a[5]) ^ (~a[4] & a[6])) +
			K[i] + w[i];
		t2 = (turn(a[0], 2) ^ turn(a[0], 13) ^ turn(a[0], 22)) +
			((a[0] & a[1]) ^ (a[0] & a[2]) ^ (a[1] & a[2]));
		memmove(a + 1, a, 7 * sizeof a[0]);
		a[4] += t1;
		a[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		h[i] += a[i];
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, start, sizeof start);
	s->bytes = 0;
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	size_t have = (size_t)(s->bytes % 64), part;

	s->bytes += n;
	while (n) {
		if (!have && n >= 64) {
			mix(s->h, at);
			at += 64;
			n -= 64;
			continue;
		}
		part = 64 - have < n ? 64 - have : n;
		memcpy(s->rest + have, at, part);
		have += part;
		at += part;
		n -= part;
		if (have == 64) {
			mix(s->h, s->rest);
			have = 0;
		}
	}
}

static void finish(struct sha256 *s)
{
	unsigned char last[128] = { 0 };
	size_t rest = (size_t)(s->bytes % 64), size = rest < 56 ? 64 : 128, i;

	memcpy(last, s->rest, rest);
	last[rest] = 0x80;
	for (i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)(s->bytes * 8 >> (8 * i));
	for (i = 0; i < size; i += 64)
		mix(s->h, last + i);
}

void sha256_end(struct sha256 *s, char ret[65])
{
	finish(s);
	for (int i = 0; i < 8; i++)
		snprintf(ret + 8 * i, 9, "%08x", (unsigned int)s->h[i]);
}

void sha256_hex(const void *bytes, size_t n, char ret[65])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_end(&s, ret);
}

static void end_binary(struct sha256 *s, unsigned char ret[32])
{
	finish(s);
	for (int i = 0; i < 32; i++)
		ret[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hmac_key(const void *key, size_t key_bytes, const void *bytes, size_t n, unsigned char ret[32])
{
	unsigned char block[64] = { 0 };
	struct sha256 s;

	if (key_bytes > sizeof(block)) {
		sha256_init(&s);
		sha256_add(&s, key, key_bytes);
		end_binary(&s, block);
	} else {
		memcpy(block, key, key_bytes);
	}
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, bytes, n);
	end_binary(&s, ret);
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, ret, 32);
	end_binary(&s, ret);
}

void sha256_hmac(const char *key, const void *bytes, size_t n, unsigned char ret[32])
{
	sha256_hmac_key(key, strlen(key), bytes, n, ret);
}
