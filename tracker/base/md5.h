/* SPDX-License-Identifier: Apache-2.0 */
/* md5.h: MD5 (RFC 1321), for checksums that a format or protocol asks for. Not for secrets. */
#ifndef DPT_BASE_MD5_H
#define DPT_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

/* Incremental hashing in the caller's storage. */
struct md5 {
	uint32_t h[4];
	uint64_t bytes;
	unsigned char rest[64];
};

void md5_init(struct md5 *m);
void md5_add(struct md5 *m, const void *bytes, size_t n);
void md5_end(struct md5 *m, unsigned char ret[16]);

#endif
