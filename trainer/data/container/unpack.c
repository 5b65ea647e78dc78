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
