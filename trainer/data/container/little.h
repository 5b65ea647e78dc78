/* little.h: numbers as files hold them, the lowest byte first. */
#ifndef DPT_DATA_LITTLE_H
#define DPT_DATA_LITTLE_H

#include <stdint.h>

static inline uint32_t little_u16(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t little_u32(const unsigned char *at)
{
	return little_u16(at) | little_u16(at + 2) << 16;
}

static inline uint64_t little_u64(const unsigned char *at)
{
	return little_u32(at) | (uint64_t)little_u32(at + 4) << 32;
}

#endif
