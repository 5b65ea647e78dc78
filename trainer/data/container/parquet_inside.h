/* parquet_inside.h: what a footer says, and values of pages. Private to parquet*.c. */
#ifndef DPT_DATA_PARQUET_INSIDE_H
#define DPT_DATA_PARQUET_INSIDE_H

#include "trainer/data/container/parquet.h"
#include "trainer/data/container/parquet_page.h"

/* A column's part of a row group. */
struct parquet_chunk {
	int codec;
	int64_t values;
	uint64_t begin, end; /* of its pages in the file */
};

struct parquet_group {
	int64_t rows;
	struct parquet_chunk *chunk; /* [column] */
};

struct parquet {
	const struct byte_source *file;
	struct parquet_column *column;
	int *levels; /* [column]: of definition: 0 where a value is always there */
	bool *wide;  /* [column]: numbers of 64 bits */
	int n_columns, cap_columns;
	struct parquet_group *group;
	int n_groups;
};

/* Fills columns and groups out of the footer. False: it is damaged. ret as zeroed but for file. */
bool parquet_footer(struct parquet *ret, const unsigned char *bytes, size_t n);

/* ---- streams of numbers in pages ---- */

/* Runs and packed numbers of `width` bits, mixed. */
struct parquet_runs {
	const unsigned char *at, *end;
	int width;
	uint64_t run;	/* that are left of a run of one value */
	uint64_t packed; /* that are left of packed ones */
	uint32_t value;
	int bit; /* of *at, of packed ones */
};

bool parquet_runs_next(struct parquet_runs *r, uint32_t *ret);

/* n numbers in DELTA_BINARY_PACKED; *at moves behind them. */
bool parquet_deltas(const unsigned char **at, const unsigned char *end, int64_t *ret, uint32_t n);

#endif
