/* parquet_inside.h: the footer's content, and the number streams of pages. Private to parquet*.c. */
#ifndef DPT_DATA_PARQUET_INSIDE_H
#define DPT_DATA_PARQUET_INSIDE_H

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

/* ---- streams of numbers in pages ---- */

/* RLE/bit-packed hybrid: runs of one value mixed with groups of numbers packed in `width` bits. */
struct parquet_runs {
	const unsigned char *at, *end;
	int width;
	uint64_t run;	 /* values left of a run */
	uint64_t packed; /* values left of packed groups */
	uint32_t value;
	int bit; /* next bit of *at, in packed groups */
};

/* Decodes the next number. False: damaged, or the end. */
bool parquet_runs_next(struct parquet_runs *r, uint32_t *ret);

/* Decodes n numbers in DELTA_BINARY_PACKED and advances *at past them. False: damaged. */
bool parquet_deltas(const unsigned char **at, const unsigned char *end, int64_t *ret, uint32_t n);

#endif
