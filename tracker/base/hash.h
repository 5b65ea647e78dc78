/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h: FNV-1a in 64 bits, for tags and file names, and SipHash-1-3, for tables. People who choose their texts can
 * make two values of the former equal; use sha256.h against that. In the header, so that build tools can use it without
 * a library. */
#ifndef DPT_BASE_HASH_H
#define DPT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_FNV_BEGIN UINT64_C(14695981039346656037)

/* Continues hash (HASH_FNV_BEGIN at the start) over n bytes. */
static inline uint64_t hash_fnv(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * UINT64_C(1099511628211);
	return hash;
}

/* The same over a text without its NUL. */
static inline uint64_t hash_fnv_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

static inline void hash_sip_round(uint64_t v[4])
{
#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))
	v[0] += v[1];
	v[2] += v[3];
	v[1] = ROTATE(v[1], 13) ^ v[0];
	v[3] = ROTATE(v[3], 16) ^ v[2];
	v[0] = ROTATE(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = ROTATE(v[1], 17) ^ v[2];
	v[3] = ROTATE(v[3], 21) ^ v[0];
	v[2] = ROTATE(v[2], 32);
#undef ROTATE
}

/* SipHash-1-3 of n bytes (Aumasson and Bernstein 2012): who does not know the secret cannot choose texts whose values
 * are equal or near. Differs between machines of another byte order. */
static inline uint64_t hash_sip(const uint64_t secret[2], const void *bytes, size_t n)
{
	uint64_t v[4] = { secret[0] ^ UINT64_C(0x736f6d6570736575), secret[1] ^ UINT64_C(0x646f72616e646f6d),
			  secret[0] ^ UINT64_C(0x6c7967656e657261), secret[1] ^ UINT64_C(0x7465646279746573) };
	const unsigned char *p = (const unsigned char *)bytes, *end = p + n / 8 * 8;
	uint64_t word;

	for (; p < end; p += 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		hash_sip_round(v);
		v[0] ^= word;
	}
	word = (uint64_t)n << 56;
	for (size_t i = 0; i < n % 8; i++)
		word |= (uint64_t)p[i] << 8 * i;
	v[3] ^= word;
	hash_sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		hash_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
