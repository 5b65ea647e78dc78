/* unpack.h: blocks of bytes as Parquet and Arrow pack them. Which ways there are is configure's to find. */
#ifndef DPT_DATA_UNPACK_H
#define DPT_DATA_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* Numbers of Parquet's CompressionCodec. */
enum unpack_kind {
	UNPACK_NONE = 0,
	UNPACK_SNAPPY = 1,
	UNPACK_GZIP = 2,
	UNPACK_ZSTD = 6,
	UNPACK_LZ4 = 7,
	UNPACK_END = 8,
};

/* "snappy", …; of what is not unpacked here too. */
const char *unpack_name(int kind);

/* Whether this build can. */
bool unpack_can(int kind);

/* Exactly to_n bytes, whatever the packed ones say. False: they are damaged. */
bool unpack(int kind, const void *from, size_t n, void *to, size_t to_n);

#endif
