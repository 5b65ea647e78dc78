/* token_stream.c: reads an object in blocks and decompresses it with zlib or libzstd. */
#include "config.h"

#include "trainer/data/corpus/token_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#define BLOCK ((size_t)1 << 20)
#define AHEAD ((uint64_t)64 << 20) /* of a remote object, announced ahead of the reader */
#define AHEAD_STEP ((uint64_t)8 << 20)
#define GZIP_OR_ZLIB (15 + 32)

struct stream {
	struct objects *store;
	int object;
	enum text_packing packing;
	uint64_t at, announced; /* of the object */
	unsigned char *block;
	size_t n, used; /* of the block */
	bool inside;	/* within a gzip member or zstd frame */
	z_stream z;
#ifdef HAVE_ZSTD
	ZSTD_DStream *zstd;
#endif
};

static int fail_damaged_stream(const struct stream *s, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.300s: %s", objects_address(s->store, s->object), what);
}

int stream_open(struct stream **ret, struct objects *store, int object, enum text_packing packing, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	bool good = s && (s->block = malloc(BLOCK));

	if (good) {
		s->store = store;
		s->object = object;
		s->packing = packing;
	}
	if (good && packing == TEXT_GZIP)
		good = inflateInit2(&s->z, GZIP_OR_ZLIB) == Z_OK;
#ifdef HAVE_ZSTD
	if (good && packing == TEXT_ZSTD)
		good = (s->zstd = ZSTD_createDStream()) != NULL;
#else
	if (good && packing == TEXT_ZSTD) {
		stream_close(s);
		return err_set(err, ERR_USAGE, "%.300s: this build lacks zstd (libzstd was not found)",
			       objects_address(store, object));
	}
#endif
	if (!good) {
		stream_close(s);
		return err_set(err, ERR_NOMEM, "out of memory: %.300s", objects_address(store, object));
	}
	*ret = s;
	return 0;
}

void stream_close(struct stream *s)
{
	if (!s)
		return;
	if (s->packing == TEXT_GZIP)
		inflateEnd(&s->z);
#ifdef HAVE_ZSTD
	ZSTD_freeDStream(s->zstd);
#endif
	free(s->block);
	free(s);
}

static void announce_stream_ahead(struct stream *s)
{
	uint64_t bytes = objects_bytes(s->store, s->object);

	for (; s->announced < bytes && s->announced < s->at + AHEAD; s->announced += AHEAD_STEP)
		if (!objects_want(s->store, &(struct objects_range){ .object = s->object, .at = s->announced, .n = 1 }))
			return;
}

/* Reads the next block; n = 0 at the end. */
static int read_next_block(struct stream *s, struct err *err)
{
	uint64_t left = objects_bytes(s->store, s->object) - s->at;
	size_t n = left < BLOCK ? (size_t)left : BLOCK;
	int rc = 0;

	announce_stream_ahead(s);
	if (n)
		rc = objects_read(s->store, &(struct objects_range){ .object = s->object, .at = s->at, .n = n },
				  s->block, err);
	s->at += n;
	s->n = rc ? 0 : n;
	s->used = 0;
	return rc;
}

/* Decompresses the rest of the block into `to`. *ret_n 0: needs the next block. */
static int inflate_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	int rc;

	s->z.next_in = s->block + s->used;
	s->z.avail_in = (unsigned)(s->n - s->used);
	s->z.next_out = to;
	s->z.avail_out = (unsigned)(n < BLOCK ? n : BLOCK);
	*ret_n = s->z.avail_out;
	rc = inflate(&s->z, Z_NO_FLUSH);
	*ret_n -= s->z.avail_out;
	s->used = s->n - s->z.avail_in;
	s->inside = rc != Z_STREAM_END;
	if (rc == Z_STREAM_END)
		rc = inflateReset(&s->z); /* another member may follow */
	return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : fail_damaged_stream(s, "is not a gzip file, or is damaged", err);
}

#ifdef HAVE_ZSTD
static int unzstd_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	ZSTD_inBuffer in = { s->block, s->n, s->used };
	ZSTD_outBuffer out = { to, n, 0 };
	size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(rc))
		return fail_damaged_stream(s, "is not a zstd file, or is damaged", err);
	s->used = in.pos;
	s->inside = rc != 0;
	*ret_n = out.pos;
	return 0;
}
#endif

static int unpack_from_block(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	*ret_n = s->n - s->used < n ? s->n - s->used : n;
	switch (s->packing) {
	case TEXT_GZIP:
		return inflate_from_block(s, to, n, ret_n, err);
#ifdef HAVE_ZSTD
	case TEXT_ZSTD:
		return unzstd_from_block(s, to, n, ret_n, err);
#endif
	default:
		memcpy(to, s->block + s->used, *ret_n);
		s->used += *ret_n;
		return 0;
	}
}

/* A compressed block may yield no output yet, or more than fits. So the decompressor is called again before the next
 * block is read. */
int stream_read(struct stream *s, void *to, size_t n, size_t *ret_n, struct err *err)
{
	int rc = 0;

	*ret_n = 0;
	while (!rc && !*ret_n) {
		bool packed = s->packing != TEXT_UNPACKED && s->inside;

		if (s->used < s->n || packed)
			rc = unpack_from_block(s, to, n, ret_n, err);
		if (rc || *ret_n || s->used < s->n)
			continue;
		rc = read_next_block(s, err);
		if (!rc && !s->n)
			return s->inside && s->packing != TEXT_UNPACKED ? fail_damaged_stream(s, "is truncated", err)
									: 0;
	}
	return rc;
}
