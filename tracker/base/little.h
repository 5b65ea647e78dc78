/* little.h: little-endian integers in memory and files. */
#ifndef DPT_BASE_LITTLE_H
#define DPT_BASE_LITTLE_H

#include <endian.h>
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

#endif
