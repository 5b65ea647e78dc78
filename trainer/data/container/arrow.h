/* arrow.h: the rows of an Arrow IPC file or stream as samples, as Hugging Face's datasets keeps them: a column of
 * pictures' files (a struct image: bytes, path, or plain bytes) and one of labels
 * (https://arrow.apache.org/docs/format/Columnar.html). Values lie whole in the file, or in packed buffers
 * (arrow_buffer.h), so a sample is where they do. Knows no pictures. */
#ifndef DPT_DATA_ARROW_H
#define DPT_DATA_ARROW_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

/* Whether a file that begins so (8 bytes) is one. */
bool arrow_probe(const void *head);

/* As parquet_scan (parquet_set.h). Columns that are coded by a dictionary are refused, as are batches with more than
 * 256 MiB of pictures in one packed buffer. */
int arrow_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	       struct err *err);

#endif
