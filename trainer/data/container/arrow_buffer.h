/* arrow_buffer.h: a buffer of an Arrow batch that is packed: eight bytes that say how many it has unpacked (-1: it is
 * not packed after all), then a frame of LZ4 or Zstandard (https://arrow.apache.org/docs/format/Columnar.html, "Record
 * Batch Body Compression"). A frame knows where it ends, so a place in the file is enough to read one. */
#ifndef DPT_DATA_ARROW_BUFFER_H
#define DPT_DATA_ARROW_BUFFER_H

#include "trainer/data/container/byte_source.h"

/* How a buffer is packed, as samples_packed takes it: above the numbers of enum decompress_kind. */
enum arrow_packing { ARROW_LZ4 = 8, ARROW_ZSTD = 9 };

#define ARROW_BUFFER_HEAD 8
#define ARROW_BUFFER_MAX (((uint32_t)1 << 28) - 1) /* bytes of one that samples lie in, unpacked */

/* Number n of Arrow's CompressionType as an enum arrow_packing; negative: this build cannot decompress it. */
int arrow_packing_of(int64_t n);

/* The eight bytes in front of the buffer that begins at `at`. */
int arrow_buffer_size(const struct byte_source *file, uint64_t at, int64_t *ret, struct err *err);

/* The first n bytes of such a buffer, unpacked. ERR_CORRUPT: it is damaged, or shorter; the text names no file. */
int arrow_buffer_read(const struct byte_source *file, uint64_t at, int packing, void *to, size_t n, struct err *err);

/* All of it; *ret is the caller's to free. */
int arrow_buffer_whole(const struct byte_source *file, uint64_t at, int packing, unsigned char **ret, uint32_t *ret_n,
		       struct err *err);

#endif
