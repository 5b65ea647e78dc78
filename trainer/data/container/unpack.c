/* unpack.c: the libraries' own calls, each bounded by the room that is given. */
#include "config.h"

#include "trainer/data/container/unpack.h"

#include <string.h>
#include <zlib.h>

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

#define GZIP_OR_ZLIB (15 + 32) /* inflateInit2: by the header */
#define LZ4_MOST 0x7E000000u

const char *unpack_name(int kind)
{
	static const char *const names[UNPACK_END] = { "none",	 "snappy",	   "gzip", "lzo",
						       "brotli", "lz4 (Hadoop's)", "zstd", "lz4" };

	return kind >= 0 && kind < UNPACK_END ? names[kind] : "an unknown way";
}

bool unpack_can(int kind)
{
	switch (kind) {
	case UNPACK_NONE:
	case UNPACK_GZIP:
		return true;
#ifdef HAVE_SNAPPY
	case UNPACK_SNAPPY:
		return true;
#endif
#ifdef HAVE_ZSTD
	case UNPACK_ZSTD:
		return true;
#endif
#ifdef HAVE_LZ4
	case UNPACK_LZ4:
	case UNPACK_LZ4_FRAME:
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
static bool unsnap(const void *from, size_t n, void *to, size_t to_n)
{
	size_t says = 0;

	return snappy_uncompressed_length(from, n, &says) == SNAPPY_OK && says == to_n &&
	       snappy_uncompress(from, n, to, &says) == SNAPPY_OK && says == to_n;
}
#endif

bool unpack(int kind, const void *from, size_t n, void *to, size_t to_n)
{
	switch (kind) {
	case UNPACK_NONE:
		if (n == to_n)
			memcpy(to, from, n);
		return n == to_n;
	case UNPACK_GZIP:
		return inflate_all(from, n, to, to_n);
#ifdef HAVE_SNAPPY
	case UNPACK_SNAPPY:
		return unsnap(from, n, to, to_n);
#endif
#ifdef HAVE_ZSTD
	case UNPACK_ZSTD:
		return ZSTD_decompress(to, to_n, from, n) == to_n;
#endif
#ifdef HAVE_LZ4
	case UNPACK_LZ4:
		return n <= LZ4_MOST && to_n <= LZ4_MOST &&
		       LZ4_decompress_safe(from, to, (int)n, (int)to_n) == (int)to_n;
#endif
	default:
		return false;
	}
}

#ifdef HAVE_ZSTD
static bool unpack_zstd(const struct unpack_source *from, void *to, size_t to_n)
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
static bool unpack_lz4(const struct unpack_source *from, void *to, size_t to_n)
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

bool unpack_frame(int kind, const struct unpack_source *from, void *to, size_t to_n)
{
	switch (kind) {
#ifdef HAVE_ZSTD
	case UNPACK_ZSTD:
		return unpack_zstd(from, to, to_n);
#endif
#ifdef HAVE_LZ4
	case UNPACK_LZ4_FRAME:
		return unpack_lz4(from, to, to_n);
#endif
	default:
		return false;
	}
}
