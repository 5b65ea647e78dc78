/* SPDX-License-Identifier: Apache-2.0 */
/* etag.h: entity tags of stored texts (RFC 9110, 8.8.3), which If-Match names: a change whose author saw another text
 * is refused. */
#ifndef DPT_STORE_ETAG_H
#define DPT_STORE_ETAG_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/hash.h"

#define ETAG_BYTES 19 /* 16 hex digits in quotes, and the NUL */

static inline void etag_write(uint64_t hash, char ret[ETAG_BYTES])
{
	snprintf(ret, ETAG_BYTES, "\"%016" PRIx64 "\"", hash);
}

/* Whether the value of If-Match, NULL without one, is about the text of this hash. */
static inline bool etag_matches(const char *seen, uint64_t hash)
{
	char tag[ETAG_BYTES];

	etag_write(hash, tag);
	return !seen || !strcmp(seen, "*") || strstr(seen, tag);
}

#endif
