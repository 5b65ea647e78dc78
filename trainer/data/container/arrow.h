/* arrow.h: the rows of an Arrow IPC file or stream as samples, in the layout of Hugging Face's datasets: a column of
 * encoded pictures (a struct image: bytes, path; or plain bytes) and a column of labels
 * (https://arrow.apache.org/docs/format/Columnar.html). A value is contiguous in the file or in a compressed buffer
 * (arrow_buffer.h), so a sample is its position. Does not decode pictures. */
#ifndef DPT_DATA_ARROW_H
#define DPT_DATA_ARROW_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

/* Returns true if head, the first 8 bytes of a file, begins an Arrow file or stream. */
bool arrow_probe(const void *head);

/* Like parquet_scan (parquet_set.h). Refuses dictionary-encoded columns, and batches with more than 256 MiB of
 * pictures in one compressed buffer. */
int arrow_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	       struct err *err);

#endif
