/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c: SHA-256, in C and with the instructions of x86, and HMAC over it. */
#include "tracker/base/sha256.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/x86.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

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

static uint32_t rotate_right(uint32_t v, int by)
{
	return v >> by | v << (32 - by);
}

/* Adds one block of 64 bytes to the state: message schedule, then 64 rounds (FIPS 180-4). */
static void mix_sha_block(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], a[8], t1, t2;
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
		       p[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(a, h, sizeof(a));
	for (i = 0; i < 64; i++) {
		t1 = a[7] + (rotate_right(a[4], 6) ^ rotate_right(a[4], 11) ^ rotate_right(a[4], 25)) +
		     ((a[4] & a[5]) ^ (~a[4] & a[6])) + K[i] + w[i];
		t2 = (rotate_right(a[0], 2) ^ rotate_right(a[0], 13) ^ rotate_right(a[0], 22)) +
		     ((a[0] & a[1]) ^ (a[0] & a[2]) ^ (a[1] & a[2]));
		memmove(a + 1, a, 7 * sizeof(a[0]));
		a[4] += t1;
		a[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		h[i] += a[i];
}

void sha256_mix_plain(uint32_t h[8], const unsigned char *p, size_t blocks)
{
	for (; blocks; blocks--, p += 64)
		mix_sha_block(h, p);
}

void sha256_mix_both_plain(uint32_t h[8], uint32_t other[8], const unsigned char *p, size_t blocks)
{
	sha256_mix_plain(h, p, blocks);
	sha256_mix_plain(other, p, blocks);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define INSTRUCTIONS __attribute__((target("sha,sse4.1,ssse3")))

/* The state in the layout of the instructions: two halves of four words, the first word highest. A pair of instructions
 * does four rounds; message words after the sixteenth are computed four at a time. */
struct sha_halves {
	__m128i abef, cdgh;
};

INSTRUCTIONS static struct sha_halves load_sha_state(const uint32_t h[8])
{
	return (struct sha_halves){ _mm_set_epi32((int)h[0], (int)h[1], (int)h[4], (int)h[5]),
				    _mm_set_epi32((int)h[2], (int)h[3], (int)h[6], (int)h[7]) };
}

INSTRUCTIONS static void store_sha_state(uint32_t h[8], const struct sha_halves *s)
{
	uint32_t words[8];

	_mm_storeu_si128((__m128i *)(void *)words, s->abef);
	_mm_storeu_si128((__m128i *)(void *)(words + 4), s->cdgh);
	memcpy(h, (uint32_t[8]){ words[3], words[2], words[7], words[6], words[1], words[0], words[5], words[4] }, 32);
}

INSTRUCTIONS static inline void load_message_words(__m128i m[4], const unsigned char *p)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

	for (int i = 0; i < 4; i++)
		m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
}

/* The message words plus constants of four rounds, beginning with round 4i. */
INSTRUCTIONS static inline __m128i next_message_words(__m128i m[4], int i)
{
	__m128i w;

	if (i >= 4) {
		w = _mm_alignr_epi8(m[(i + 3) % 4], m[(i + 2) % 4], 4);
		w = _mm_add_epi32(_mm_sha256msg1_epu32(m[i % 4], m[(i + 1) % 4]), w);
		m[i % 4] = _mm_sha256msg2_epu32(w, m[(i + 3) % 4]);
	}
	return _mm_add_epi32(m[i % 4], _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
}

INSTRUCTIONS static inline void run_four_rounds(struct sha_halves *s, __m128i w, __m128i w_high)
{
	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, w);
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, w_high);
}

INSTRUCTIONS static inline void add_sha_state(struct sha_halves *s, const struct sha_halves *before)
{
	s->abef = _mm_add_epi32(s->abef, before->abef);
	s->cdgh = _mm_add_epi32(s->cdgh, before->cdgh);
}

INSTRUCTIONS static void mix_by_instructions(uint32_t h[8], const unsigned char *p, size_t blocks)
{
	struct sha_halves s = load_sha_state(h);

	for (; blocks; blocks--, p += 64) {
		const struct sha_halves before = s;
		__m128i m[4], w;

		load_message_words(m, p);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			w = next_message_words(m, i);
			run_four_rounds(&s, w, _mm_shuffle_epi32(w, 0x0e));
		}
		add_sha_state(&s, &before);
	}
	store_sha_state(h, &s);
}

/* Mixes two states with the same blocks. The rounds of one fill the latency gaps of the other, and the message words
 * are computed once. */
INSTRUCTIONS static void mix_both_by_instructions(uint32_t h[8], uint32_t other[8], const unsigned char *p,
						  size_t blocks)
{
	struct sha_halves s = load_sha_state(h), o = load_sha_state(other);

	for (; blocks; blocks--, p += 64) {
		const struct sha_halves before = s, other_before = o;
		__m128i m[4], w, high;

		load_message_words(m, p);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			w = next_message_words(m, i);
			high = _mm_shuffle_epi32(w, 0x0e);
			run_four_rounds(&s, w, high);
			run_four_rounds(&o, w, high);
		}
		add_sha_state(&s, &before);
		add_sha_state(&o, &other_before);
	}
	store_sha_state(h, &s);
	store_sha_state(other, &o);
}

sha256_mix_fn *sha256_mix_best(void)
{
	return x86_has(X86_SHA) ? mix_by_instructions : sha256_mix_plain;
}

sha256_mix_both_fn *sha256_mix_both_best(void)
{
	return x86_has(X86_SHA) ? mix_both_by_instructions : sha256_mix_both_plain;
}

#else

sha256_mix_fn *sha256_mix_best(void)
{
	return sha256_mix_plain;
}

sha256_mix_both_fn *sha256_mix_both_best(void)
{
	return sha256_mix_both_plain;
}

#endif

void sha256_init(struct sha256 *s)
{
	static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, start, sizeof(start));
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

bool sha256_proof_equal(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	unsigned char differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}
