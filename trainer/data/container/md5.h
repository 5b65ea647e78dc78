/* md5.h: MD5 (RFC 1321), for the checksums in indexes of shards. Not for secrets. */
#ifndef DPT_DATA_MD5_H
#define DPT_DATA_MD5_H

#include <stddef.h>
#include <stdint.h>

struct md5 {
	uint32_t h[4];
	uint64_t bytes;
	unsigned char rest[64];
};

/* Computes a digest in steps: init, any number of add, end. */
void md5_init(struct md5 *m);
void md5_add(struct md5 *m, const void *bytes, size_t n);
void md5_end(struct md5 *m, char ret[33]); /* 32 lower-case hex digits */

#endif
