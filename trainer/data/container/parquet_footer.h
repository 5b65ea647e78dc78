/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_footer.h: the content of the footer: the columns and the row groups. Private to the reader. */
#ifndef DPT_DATA_PARQUET_FOOTER_H
#define DPT_DATA_PARQUET_FOOTER_H

#include "trainer/data/container/parquet.h"
#include "trainer/data/container/parquet_page.h"

/* A column chunk: a column's part of a row group. */
struct parquet_chunk {
	int codec;
	int64_t values;
	uint64_t begin, end; /* range of its pages in the file */
};

struct parquet_group {
	int64_t rows;
	struct parquet_chunk *chunk; /* [column] */
};

struct parquet {
	const struct byte_source *file;
	struct parquet_column *column;
	int *levels; /* [column]: maximum definition level; 0: never null */
	bool *wide;  /* [column]: numbers have 64 bits */
	int n_columns, cap_columns;
	struct parquet_group *group;
	int n_groups;
};

/* Fills columns and groups from the footer. False: damaged. *ret must be zeroed except for file. */
bool parquet_footer(struct parquet *ret, const unsigned char *bytes, size_t n);

#endif
