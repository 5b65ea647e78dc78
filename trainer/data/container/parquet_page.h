/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_page.h: decompresses the pages of a Parquet file, and decodes the streams of numbers in them. A value's
 * position is the page's offset in the file and the value's offset in the uncompressed page. Knows no columns. */
#ifndef DPT_DATA_PARQUET_PAGE_H
#define DPT_DATA_PARQUET_PAGE_H

#include "trainer/data/container/decompress.h"
#include "trainer/data/container/parquet.h"

/* ---- parquet_footer.c ----
 * The content of the footer: the columns and the row groups. Private to the reader. */

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

/* An element of the schema; those below it follow it. */
struct parquet_node {
	char name[PARQUET_NAME_MAX]; /* without those above */
	int column;		     /* -1: a group */
	int end;		     /* the first node that is not below it */
	int defined, repeats;	     /* levels from which a value is present; a further value of the innermost list */
	bool repeated, list;	     /* itself; a group whose only member is repeated */
};

struct parquet {
	const struct byte_source *file;
	struct parquet_node *node;
	int n_nodes;
	struct parquet_column *column;
	int *levels;  /* [column]: maximum definition level; 0: never null */
	int *repeats; /* [column]: maximum repetition level; 0: one value a row */
	bool *wide;   /* [column]: numbers have 64 bits */
	int n_columns;
	struct parquet_group *group;
	int n_groups;
	char *metadata; /* of the datasets library; NULL: none */
};

/* Fills columns and groups from the footer. False: damaged. *ret must be zeroed except for file. */
bool parquet_footer(struct parquet *ret, const unsigned char *bytes, size_t n);

/* ---- parquet.c ----
 * The values of a column of a group, one after the other. */

struct parquet_entry {
	bool end; /* after the last value */
	uint32_t repeats, defined;
	struct parquet_cell cell;
};

struct parquet_cursor;
/* Errors as of parquet_walk. */
int parquet_cursor_open(struct parquet_cursor **ret, struct parquet *p, int group, int column, struct err *err);
int parquet_cursor_next(struct parquet_cursor *c, struct parquet_entry *ret, struct err *err);
void parquet_cursor_close(struct parquet_cursor *c); /* NULL is fine */

/* ---- parquet_page.c ---- */

#define PARQUET_PAGE_MAX (((uint32_t)1 << 28) - 1) /* uncompressed */

enum parquet_page_kind { PARQUET_DATA = 0, PARQUET_INDEX = 1, PARQUET_DICTIONARY = 2, PARQUET_DATA_2 = 3 };

enum parquet_encoding {
	PARQUET_PLAIN = 0,
	PARQUET_PLAIN_DICTIONARY = 2,
	PARQUET_RLE = 3,
	PARQUET_DELTA_NUMBERS = 5,
	PARQUET_DELTA_LENGTHS = 6,
	PARQUET_DELTA_BYTES = 7,
	PARQUET_RLE_DICTIONARY = 8,
	PARQUET_SPLIT = 9,
};

struct parquet_page {
	enum parquet_page_kind kind;
	int encoding;
	uint32_t values; /* including nulls */
	/* PARQUET_DATA_2: bytes of repetition and definition levels, in front of the values */
	uint32_t levels[2];
	uint64_t next;	      /* offset of the next page */
	uint64_t plain;	      /* file offset of bytes[0] if the page is uncompressed, else 0 */
	unsigned char *bytes; /* n bytes; the caller frees it */
	uint32_t n;
};

/* A page at offset `at` of the file, which must end before `end`. codec: enum decompress_kind. */
struct parquet_page_place {
	const struct byte_source *file;
	uint64_t at, end;
	int codec;
};

/* Reads and decompresses a page. ERR_CORRUPT: damaged; ERR_USAGE: larger than PARQUET_PAGE_MAX. The messages do not
 * name the file. */
int parquet_page_read(struct parquet_page *ret, const struct parquet_page_place *p, struct err *err);

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
