/* sha256.c: SHA-256 and HMAC over it. */
#include "tracker/base/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/sha256_mix.h"

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
	sha256_mix_fn *mix = sha256_mix_best();

	s->bytes += n;
	while (n) {
		if (!have && n >= 64) {
			mix(s->h, at, n / 64);
			at += n / 64 * 64;
			n %= 64;
			continue;
		}
		part = 64 - have < n ? 64 - have : n;
		memcpy(s->rest + have, at, part);
		have += part;
		at += part;
		n -= part;
		if (have == 64) {
			mix(s->h, s->rest, 1);
			have = 0;
		}
	}
}

void sha256_add_both(struct sha256 *s, struct sha256 *other, const void *bytes, size_t n)
{
	size_t have = (size_t)(s->bytes % 64), first = have ? 64 - have : 0, whole;

	first = first < n ? first : n;
	if (other->bytes % 64 != have)
		first = n;
	whole = (n - first) / 64 * 64;
	sha256_add(s, bytes, first);
	sha256_add(other, bytes, first);
	if (whole)
		sha256_mix_both_best()(s->h, other->h, (const unsigned char *)bytes + first, whole / 64);
	s->bytes += whole;
	other->bytes += whole;
	sha256_add(s, (const unsigned char *)bytes + first + whole, n - first - whole);
	sha256_add(other, (const unsigned char *)bytes + first + whole, n - first - whole);
}

static void finish_sha256(struct sha256 *s)
{
	unsigned char last[128] = { 0 };
	size_t rest = (size_t)(s->bytes % 64), size = rest < 56 ? 64 : 128, i;

	memcpy(last, s->rest, rest);
	last[rest] = 0x80;
	for (i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)(s->bytes * 8 >> (8 * i));
	sha256_mix_best()(s->h, last, size / 64);
}

void sha256_end(struct sha256 *s, char ret[65])
{
	finish_sha256(s);
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

static void finish_sha256_binary(struct sha256 *s, unsigned char ret[32])
{
	finish_sha256(s);
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
		finish_sha256_binary(&s, block);
	} else {
		memcpy(block, key, key_bytes);
	}
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, bytes, n);
	finish_sha256_binary(&s, ret);
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_init(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, ret, 32);
	finish_sha256_binary(&s, ret);
}

void sha256_hmac(const char *key, const void *bytes, size_t n, unsigned char ret[32])
{
	sha256_hmac_key(key, strlen(key), bytes, n, ret);
}
