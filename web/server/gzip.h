/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h: compresses and decompresses gzip streams piece by piece. One thread at a time for each object. */
#ifndef DPT_SERVER_GZIP_H
#define DPT_SERVER_GZIP_H

#include "tracker/base/buf.h"

struct gzip;
struct gunzip;

struct gzip *gzip_new(int level);
void gzip_free(struct gzip *p); /* NULL is fine */

/* Appends the compressed form of n bytes to out; finish ends the stream. Returns false when out is at its
 * maximum. */
bool gzip_feed(struct gzip *p, const void *bytes, size_t n, bool finish, struct buf *out);

struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *u); /* NULL is fine */

/* Appends the decompressed form of n bytes of a gzip stream to out. 0, ERR_CORRUPT, or ERR_LIMIT when out is at its
 * maximum. */
int gunzip_feed(struct gunzip *u, const void *bytes, size_t n, struct buf *out);
bool gunzip_complete(const struct gunzip *u); /* the last byte was the end of a member */

/* Returns true if an Accept-Encoding header (NULL: absent) accepts a coding ("gzip", "br"). */
bool coding_accepted(const char *accept_encoding, const char *coding);

#endif
