/* parquet_set.h: the rows of a Parquet file as samples: a column of encoded pictures (Hugging Face's struct image:
 * bytes, path) and a column of labels. Does not decode pictures. */
#ifndef DPT_DATA_PARQUET_SET_H
#define DPT_DATA_PARQUET_SET_H

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

/* Adds the rows of a file in order. fields: column names as for webdataset_scan (a struct's name matches its member
 * "bytes"), followed by the usual ones. Rows without a picture or a label, and damaged ones, are noted and skipped.
 * ERR_USAGE names an unsupported encoding or compression. */
int parquet_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		 const struct webdataset_fields *f, struct err *err);

#endif
