/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c: gzip through zlib. Of HTTP it knows only the Accept-Encoding header. */
#include "web/server/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "tracker/base/err.h"
#include "tracker/mem/mem.h"

enum { GZIP_PIECE = 32768, GZIP_WINDOW = 15 + 16, GZIP_STATE = 268 << 10 /* bytes that zlib allocates, about */ };

struct gzip {
	z_stream z;
};

struct gunzip {
	z_stream z;
	bool complete;
	unsigned char piece[GZIP_PIECE];
};

struct gzip *gzip_new(int level)
{
	struct gzip *p = mem_zalloc(sizeof(*p));

	if (deflateInit2(&p->z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		mem_exhausted(GZIP_STATE);
	return p;
}

void gzip_free(struct gzip *p)
{
	if (!p)
		return;
	deflateEnd(&p->z);
	free(p);
}

bool gzip_feed(struct gzip *p, const void *bytes, size_t n, bool finish, struct buf *out)
{
	char *at;
	int rc;

	p->z.next_in = (Bytef *)bytes;
	p->z.avail_in = (uInt)n;
	do {
		at = buf_reserve(out, GZIP_PIECE);
		if (!at)
			return false;
		p->z.next_out = (Bytef *)at;
		p->z.avail_out = GZIP_PIECE;
		rc = deflate(&p->z, finish ? Z_FINISH : Z_NO_FLUSH);
		out->len += GZIP_PIECE - p->z.avail_out;
		if (rc == Z_STREAM_ERROR)
			return false;
	} while (!p->z.avail_out || (finish && rc != Z_STREAM_END));
	return true;
}

struct gunzip *gunzip_new(void)
{
	struct gunzip *u = mem_zalloc(sizeof(*u));

	if (inflateInit2(&u->z, GZIP_WINDOW) != Z_OK)
		mem_exhausted(GZIP_STATE);
	return u;
}

void gunzip_free(struct gunzip *u)
{
	if (!u)
		return;
	inflateEnd(&u->z);
	free(u);
}

int gunzip_feed(struct gunzip *u, const void *bytes, size_t n, struct buf *out)
{
	int rc;

	u->z.next_in = (Bytef *)bytes;
	u->z.avail_in = (uInt)n;
	do {
		if (u->complete && !u->z.avail_in)
			return 0;
		if (u->complete && inflateReset(&u->z) != Z_OK)
			return ERR_CORRUPT;
		u->complete = false;
		u->z.next_out = u->piece;
		u->z.avail_out = GZIP_PIECE;
		rc = inflate(&u->z, Z_NO_FLUSH);
		/* first store the bytes before an error, so that the same stream fails in the same way however it is
		 * cut into pieces */
		buf_add(out, u->piece, GZIP_PIECE - u->z.avail_out);
		if (buf_failed(out))
			return ERR_LIMIT;
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
			return ERR_CORRUPT;
		u->complete = rc == Z_STREAM_END;
	} while (u->z.avail_in || !u->z.avail_out);
	return 0;
}

bool gunzip_complete(const struct gunzip *u)
{
	return u->complete;
}

bool coding_accepted(const char *accept_encoding, const char *coding)
{
	const char *at = accept_encoding;
	size_t n;

	while (at && *at) {
		at += strspn(at, " \t,");
		n = strcspn(at, " \t,;");
		if ((n == strlen(coding) && !strncasecmp(at, coding, n)) || (n == 1 && *at == '*')) {
			at += n;
			at += strspn(at, " \t;");
			return strncasecmp(at, "q=", 2) || strtod(at + 2, NULL) > 0;
		}
		at += strcspn(at, ",");
	}
	return false;
}
