/* unpack.h: blocks of bytes as Parquet and Arrow pack them. Which ways there are is configure's to find. */
#ifndef DPT_DATA_UNPACK_H
#define DPT_DATA_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of Parquet's CompressionCodec. */
enum unpack_kind {
	UNPACK_NONE = 0,
	UNPACK_SNAPPY = 1,
	UNPACK_GZIP = 2,
	UNPACK_ZSTD = 6,
	UNPACK_LZ4 = 7,
	UNPACK_END = 8,
	UNPACK_LZ4_FRAME = 9, /* with a header of its own; none of Parquet's */
};

/* "snappy", …; of what is not unpacked here too. */
const char *unpack_name(int kind);

/* Whether this build can. */
bool unpack_can(int kind);

/* Exactly to_n bytes, whatever the packed ones say. False: they are damaged. */
bool unpack(int kind, const void *from, size_t n, void *to, size_t to_n);

/* Snappy's writers begin anew with each block of unpacked bytes: any of them can be unpacked without the others. */
#define UNPACK_SNAPPY_BLOCK ((size_t)65536)

/* Where each block of to_n unpacked bytes begins in the packed ones, the end of the last one behind them: one number
 * more than there are blocks. False: they are damaged, or blocks do not begin anew. */
bool unpack_snappy_map(const void *from, size_t n, size_t to_n, uint32_t *ret);

/* Some blocks one after the other, to_n bytes unpacked. False: they are damaged, or need what lies before them. */
bool unpack_snappy_blocks(const void *from, size_t n, void *to, size_t to_n);

/* Packed bytes a piece at a time: as many as *ret then has, until the next call; 0: there are no more. */
struct unpack_source {
	size_t (*next)(void *user, const void **ret);
	void *user;
};

/* The first to_n bytes of a frame (UNPACK_ZSTD, UNPACK_LZ4_FRAME). False: it is damaged, or holds fewer. */
bool unpack_frame(int kind, const struct unpack_source *from, void *to, size_t to_n);

#endif
