/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h: SHA-256 (FIPS 180-4), for ids and content digests, and HMAC (RFC 2104) for signatures with a shared key. */
#ifndef DPT_BASE_SHA256_H
#define DPT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void sha256_hex(const void *bytes, size_t n, char ret[65]); /* 64 lower-case hex digits */

/* Incremental hashing in the caller's storage. */
struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char rest[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, char ret[65]);

/* Adds the same bytes to both. If both are at the same offset of a block (bytes modulo 64), this costs little more than
 * one of them. */
void sha256_add_both(struct sha256 *s, struct sha256 *other, const void *bytes, size_t n);

/* HMAC-SHA-256 of the bytes with a text as key, of any length. */
void sha256_hmac(const char *key, const void *bytes, size_t n, unsigned char ret[32]);

/* The same with binary key; ret may overlap the key or the bytes. */
void sha256_hmac_key(const void *key, size_t key_bytes, const void *bytes, size_t n, unsigned char ret[32]);

/* Compares two proofs of n bytes in constant time, so that timing does not reveal how much of one is right. */
bool sha256_proof_equal(const void *a, const void *b, size_t n);

/* The compression function of SHA-256 on blocks of 64 bytes, in C and with CPU instructions. Private to
 * sha256.c and its test. */
typedef void sha256_mix_fn(uint32_t h[8], const unsigned char *p, size_t blocks);
typedef void sha256_mix_both_fn(uint32_t h[8], uint32_t other[8], const unsigned char *p, size_t blocks);

sha256_mix_fn sha256_mix_plain;
sha256_mix_both_fn sha256_mix_both_plain; /* the same blocks into two states */

/* The fastest one on this machine. */
sha256_mix_fn *sha256_mix_best(void);
sha256_mix_both_fn *sha256_mix_both_best(void);

#endif
