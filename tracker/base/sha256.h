/* sha256.h: SHA-256 (FIPS 180-4), for ids made from paths and names of contents; and HMAC (RFC 2104), by which those
 * who share a key know each other. */
#ifndef DPT_BASE_SHA256_H
#define DPT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256_hex(const void *bytes, size_t n, char ret[65]); /* 64 lower-case hex digits */

/* Piece by piece. Caller's storage. */
struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char rest[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, char ret[65]);

/* The same bytes to both. Where both stand equally far into a block (their bytes modulo 64), that costs little more
 * than one of them. */
void sha256_add_both(struct sha256 *s, struct sha256 *other, const void *bytes, size_t n);

/* HMAC-SHA-256 of the bytes under the key, which is text of any length. */
void sha256_hmac(const char *key, const void *bytes, size_t n, unsigned char ret[32]);

/* … under a key of any bytes; ret may be the key or the bytes. */
void sha256_hmac_key(const void *key, size_t key_bytes, const void *bytes, size_t n, unsigned char ret[32]);

#endif
