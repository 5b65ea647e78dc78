/* parquet_set.h: the rows of a Parquet file as samples: a column of pictures' files (Hugging Face's struct image:
 * bytes, path) and one of labels. Knows no pictures. */
#ifndef DPT_DATA_PARQUET_SET_H
#define DPT_DATA_PARQUET_SET_H

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

/* Adds the rows of a file in their order; fields as webdataset_scan's, by the names of columns (that of a struct stands
 * for its member bytes), with usual ones behind them. Rows without a picture or label, and what is damaged, are noted
 * and passed over. ERR_USAGE for what is kept in ways that are not read, by name. */
int parquet_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		 const struct webdataset_fields *f, struct err *err);

#endif
