/* SPDX-License-Identifier: Apache-2.0 */
/* little.h: little-endian integers in memory and files, of fixed width and in base 128 (LEB128, protobuf's varint). */
#ifndef DPT_BASE_LITTLE_H
#define DPT_BASE_LITTLE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t little_get_u16(const void *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

static inline uint64_t little_get_u64(const void *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

static inline uint32_t little_get_u32(const void *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline void little_put_u64(void *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static inline void little_put_u32(void *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

#define LITTLE_VARINT_BYTES 10 /* length of the longest varint */

/* Writes 7 bits a byte, the lowest first; the high bit says that more follow. Returns the address after them. */
static inline unsigned char *little_put_varint(unsigned char *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (unsigned char)(v | 0x80);
	*to++ = (unsigned char)v;
	return to;
}

/* Reads one at *at and moves *at after it. Returns false, with *at and *ret unchanged, if none ends in front of `end`
 * or within 10 bytes. Bits above 64 are dropped. */
static inline bool little_get_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
	const unsigned char *p = *at;
	uint64_t v = 0;

	for (unsigned shift = 0; p < end && shift < 7 * LITTLE_VARINT_BYTES; shift += 7) {
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (*p++ < 0x80) {
			*at = p;
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Signed values whose small magnitudes become small varints: 0, -1, 1, -2, … are 0, 1, 2, 3, … */
static inline uint64_t little_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t little_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

#endif
