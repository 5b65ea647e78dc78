/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.c: calls the compression libraries with bounded output. */
#include "trainer/data/container/decompress.h"

#include <stdlib.h>
#include <zlib.h>

#include "config.h"
#include "tracker/base/little.h"
#include "tracker/mem/mem.h"

#ifdef HAVE_SNAPPY
#include <snappy-c.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_LZ4
#include <lz4.h>
#include <lz4frame.h>
#endif

#define GZIP_OR_ZLIB (15 + 32) /* inflateInit2: detect the header */
#define LZ4_MOST 0x7E000000u

const char *decompress_name(int kind)
{
	static const char *const names[DECOMPRESS_END] = { "none",   "snappy",	       "gzip", "lzo",
							   "brotli", "lz4 (Hadoop's)", "zstd", "lz4" };

	return kind >= 0 && kind < DECOMPRESS_END ? names[kind] : "an unknown method";
}

bool decompress_can(int kind)
{
	switch (kind) {
	case DECOMPRESS_NONE:
	case DECOMPRESS_GZIP:
		return true;
#ifdef HAVE_SNAPPY
	case DECOMPRESS_SNAPPY:
		return true;
#endif
#ifdef HAVE_ZSTD
	case DECOMPRESS_ZSTD:
		return true;
#endif
#ifdef HAVE_LZ4
	case DECOMPRESS_LZ4:
	case DECOMPRESS_LZ4_FRAME:
		return true;
#endif
	default:
		return false;
	}
}

static bool inflate_all(const void *from, size_t n, void *to, size_t to_n)
{
	z_stream z = { .next_in = (unsigned char *)from, .avail_in = (unsigned)n, .next_out = to,
		       .avail_out = (unsigned)to_n };
	int rc;

	if (n != z.avail_in || to_n != z.avail_out || inflateInit2(&z, GZIP_OR_ZLIB) != Z_OK)
		return false;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return rc == Z_STREAM_END && !z.avail_out;
}

#ifdef HAVE_SNAPPY
static bool unpack_whole_snappy(const void *from, size_t n, void *to, size_t to_n)
{
	size_t says = 0;

	return snappy_uncompressed_length(from, n, &says) == SNAPPY_OK && says == to_n &&
	       snappy_uncompress(from, n, to, &says) == SNAPPY_OK && says == to_n;
}
#endif

bool decompress(int kind, const void *from, size_t n, void *to, size_t to_n)
{
	switch (kind) {
	case DECOMPRESS_NONE:
		if (n == to_n)
			memcpy(to, from, n);
		return n == to_n;
	case DECOMPRESS_GZIP:
		return inflate_all(from, n, to, to_n);
#ifdef HAVE_SNAPPY
	case DECOMPRESS_SNAPPY:
		return unpack_whole_snappy(from, n, to, to_n);
#endif
#ifdef HAVE_ZSTD
	case DECOMPRESS_ZSTD:
		return ZSTD_decompress(to, to_n, from, n) == to_n;
#endif
#ifdef HAVE_LZ4
	case DECOMPRESS_LZ4:
		return n <= LZ4_MOST && to_n <= LZ4_MOST &&
		       LZ4_decompress_safe(from, to, (int)n, (int)to_n) == (int)to_n;
#endif
	default:
		return false;
	}
}

#ifdef HAVE_ZSTD
static bool unpack_zstd_frame(const struct decompress_source *from, void *to, size_t to_n)
{
	ZSTD_outBuffer out = { to, to_n, 0 };
	ZSTD_inBuffer in = { NULL, 0, 0 };
	ZSTD_DStream *z = ZSTD_createDStream();
	bool sound = z != NULL;

	while (sound && out.pos < to_n) {
		if (in.pos == in.size) {
			in.size = from->next(from->user, &in.src);
			in.pos = 0;
		}
		sound = in.size && !ZSTD_isError(ZSTD_decompressStream(z, &out, &in));
	}
	ZSTD_freeDStream(z);
	return sound;
}
#endif

#ifdef HAVE_LZ4
/* Decompresses the first to_n bytes of an LZ4 frame, with input in pieces. */
static bool unpack_lz4_frame(const struct decompress_source *from, void *to, size_t to_n)
{
	LZ4F_dctx *z = NULL;
	const void *piece = NULL;
	size_t n = 0, used = 0, done = 0;
	bool sound = !LZ4F_isError(LZ4F_createDecompressionContext(&z, LZ4F_VERSION));

	while (sound && done < to_n) {
		size_t made = to_n - done, taken;

		if (used == n) {
			n = from->next(from->user, &piece);
			used = 0;
		}
		taken = n - used;
		sound = n && !LZ4F_isError(LZ4F_decompress(z, (char *)to + done, &made, (const char *)piece + used,
							   &taken, NULL)) && (made || taken);
		used += taken;
		done += made;
	}
	LZ4F_freeDecompressionContext(z);
	return sound;
}
#endif

/* Decompresses the first to_n bytes of a frame (DECOMPRESS_ZSTD, DECOMPRESS_LZ4_FRAME). False: damaged or shorter. */
static bool decompress_frame(int kind, const struct decompress_source *from, void *to, size_t to_n)
{
	(void)from, (void)to, (void)to_n; /* unused without both libraries */
	switch (kind) {
#ifdef HAVE_ZSTD
	case DECOMPRESS_ZSTD:
		return unpack_zstd_frame(from, to, to_n);
#endif
#ifdef HAVE_LZ4
	case DECOMPRESS_LZ4_FRAME:
		return unpack_lz4_frame(from, to, to_n);
#endif
	default:
		return false;
	}
}

/* ---- Arrow: streams a compressed buffer from the file to the decompressor, one piece at a time ---- */

#define PIECE ((size_t)256 << 10)

struct frame_reader {
	const struct byte_source *file;
	uint64_t at;
	unsigned char *piece;
	struct err *err;
	int rc;
};

int arrow_packing_of(int64_t n)
{
	if (n == 0 && decompress_can(DECOMPRESS_LZ4_FRAME))
		return ARROW_LZ4;
	return n == 1 && decompress_can(DECOMPRESS_ZSTD) ? ARROW_ZSTD : -1;
}

int arrow_buffer_size(const struct byte_source *file, uint64_t at, int64_t *ret, struct err *err)
{
	unsigned char head[ARROW_BUFFER_HEAD];
	int rc = 0;

	if (at > file->bytes || file->bytes - at < sizeof(head))
		return err_set(err, ERR_CORRUPT, "a compressed buffer exceeds the file");
	rc = file->read(file->user, at, head, sizeof(head), err);
	if (!rc)
		*ret = (int64_t)little_get_u64(head);
	return rc;
}

static size_t read_frame_piece(void *user, const void **ret)
{
	struct frame_reader *r = user;
	uint64_t left = r->file->bytes - r->at;
	size_t n = left < PIECE ? (size_t)left : PIECE;

	r->rc = n ? r->file->read(r->file->user, r->at, r->piece, n, r->err) : 0;
	if (r->rc)
		return 0;
	r->at += n;
	*ret = r->piece;
	return n;
}

int arrow_buffer_read(const struct arrow_buffer *b, void *to, size_t n, struct err *err)
{
	struct frame_reader r = {
		.file = b->file, .at = b->at + ARROW_BUFFER_HEAD, .err = err, .piece = mem_alloc(PIECE)
	};
	const struct decompress_source from = { read_frame_piece, &r };
	bool whole;

	whole = decompress_frame(b->packing == ARROW_ZSTD ? DECOMPRESS_ZSTD : DECOMPRESS_LZ4_FRAME, &from, to, n);
	free(r.piece);
	if (whole || r.rc)
		return r.rc;
	return err_set(err, ERR_CORRUPT, "a compressed buffer is damaged");
}

int arrow_buffer_whole(const struct arrow_buffer *b, unsigned char **ret, uint32_t *ret_n, struct err *err)
{
	unsigned char *bytes;
	int64_t n = 0;
	int rc = arrow_buffer_size(b->file, b->at, &n, err);

	if (rc)
		return rc;
	if (n < 0 || n > ARROW_BUFFER_MAX)
		return err_set(err, ERR_CORRUPT, "a compressed buffer has changed since it was indexed");
	bytes = mem_alloc((size_t)n);
	rc = arrow_buffer_read(b, bytes, (size_t)n, err);
	if (rc) {
		free(bytes);
		return rc;
	}
	*ret = bytes;
	*ret_n = (uint32_t)n;
	return 0;
}
