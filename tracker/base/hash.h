/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h: FNV-1a in 64 bits, for tables, tags and file names. People who choose their texts can make two of them equal;
 * use sha256.h against that. In the header, so that build tools can use it without a library. */
#ifndef DPT_BASE_HASH_H
#define DPT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

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

#endif
