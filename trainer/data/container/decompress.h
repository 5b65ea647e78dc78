/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.h: decompresses the blocks of Parquet files and the buffers of Arrow files. configure finds which
 * libraries are available. */
#ifndef DPT_DATA_DECOMPRESS_H
#define DPT_DATA_DECOMPRESS_H

#include "trainer/data/store/data_objects.h"

/* Values of Parquet's CompressionCodec. */
enum decompress_kind {
	DECOMPRESS_NONE = 0,
	DECOMPRESS_SNAPPY = 1,
	DECOMPRESS_GZIP = 2,
	DECOMPRESS_ZSTD = 6,
	DECOMPRESS_LZ4 = 7,
	DECOMPRESS_END = 8,
	DECOMPRESS_LZ4_FRAME = 9, /* has its own header; not a Parquet codec */
};

/* Name of a method, "snappy", …; also for unsupported ones. */
const char *decompress_name(int kind);

/* Returns true if this build supports the method. */
bool decompress_can(int kind);

/* Decompresses n bytes to exactly to_n bytes. False: damaged, or another size. */
bool decompress(int kind, const void *from, size_t n, void *to, size_t to_n);

/* Compressed input in pieces: returns the size of *ret, which is valid until the next call; 0: the end. */
struct decompress_source {
	size_t (*next)(void *user, const void **ret);
	void *user;
};

/* ---- a compressed buffer of an Arrow batch: 8 bytes with its uncompressed size (-1: stored uncompressed), then an LZ4
 * or Zstandard frame (https://arrow.apache.org/docs/format/Columnar.html, "Record Batch Body Compression") ----
 * A frame marks its own end, so its position is enough to read it. */

/* Compression of a buffer, as samples_packed stores it: above the values of enum decompress_kind. */
enum arrow_packing { ARROW_LZ4 = 8, ARROW_ZSTD = 9 };

#define ARROW_BUFFER_HEAD 8
#define ARROW_BUFFER_MAX (((uint32_t)1 << 28) - 1) /* largest uncompressed size of a buffer with samples */

/* A compressed buffer at offset `at` of a file. packing: enum arrow_packing. */
struct arrow_buffer {
	const struct byte_source *file;
	uint64_t at;
	int packing;
};

/* Converts Arrow's CompressionType n to enum arrow_packing. Negative: this build cannot decompress it. */
int arrow_packing_of(int64_t n);

/* Reads the uncompressed size, the 8 bytes in front of the frame, of the buffer at offset `at`. */
int arrow_buffer_size(const struct byte_source *file, uint64_t at, int64_t *ret, struct err *err);

/* Decompresses the first n bytes of the buffer into `to`. ERR_CORRUPT: damaged or shorter; the message does not name
 * the file. */
int arrow_buffer_read(const struct arrow_buffer *b, void *to, size_t n, struct err *err);

/* Decompresses the whole buffer. The caller frees *ret. */
int arrow_buffer_whole(const struct arrow_buffer *b, unsigned char **ret, uint32_t *ret_n, struct err *err);

#endif
