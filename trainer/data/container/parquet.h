/* SPDX-License-Identifier: Apache-2.0 */
/* parquet.h: columns of a Parquet file, one row group at a time (https://github.com/apache/parquet-format). Reads
 * numbers, truth values and bytes, in columns, structs and lists, in the encodings PLAIN, dictionary,
 * DELTA_BINARY_PACKED and DELTA_LENGTH_BYTE_ARRAY. Input is untrusted: counts have a maximum, and every value is
 * checked against its page. Does not decode pictures. */
#ifndef DPT_DATA_PARQUET_H
#define DPT_DATA_PARQUET_H

#include "trainer/data/store/data_objects.h"

#define PARQUET_NAME_MAX 256
#define PARQUET_ROWS_MAX ((int64_t)1 << 24) /* per row group */

struct parquet;

enum parquet_type { PARQUET_NUMBER, PARQUET_BYTES, PARQUET_TRUTH, PARQUET_REAL, PARQUET_OTHER };

struct parquet_column {
	char name[PARQUET_NAME_MAX]; /* "image.bytes": members of structs follow a dot */
	enum parquet_type type;
	bool repeated; /* a list: parquet_walk takes none, parquet_walk_records does */
};

/* Returns true if head, the first 4 bytes of a file, begins a Parquet file. */
bool parquet_probe(const void *head);

/* ERR_USAGE: not a Parquet file, or an incomplete one; ERR_IO: it cannot be read. Both messages name the file.
 * `file` is borrowed until close. */
int parquet_open(struct parquet **ret, const struct byte_source *file, struct err *err);
void parquet_close(struct parquet *p); /* NULL is fine */

int parquet_columns(const struct parquet *p);
const struct parquet_column *parquet_column(const struct parquet *p, int column);
int parquet_find(const struct parquet *p, const char *name); /* index of the column; -1: none */
int parquet_groups(const struct parquet *p);
int64_t parquet_rows(const struct parquet *p, int group);
const char *parquet_metadata(const struct parquet *p); /* of the datasets library: JSON, or "" */

struct parquet_cell {
	bool null;
	int64_t number;		    /* truth values: 0 or 1 */
	double real;		    /* PARQUET_REAL */
	const unsigned char *bytes; /* n of them, valid until the next cell */
	uint32_t n;
	uint64_t offset; /* position of the bytes in the file; compressed: position of their page */
	uint32_t packed; /* 0, or the position within the page as in struct sample */
};

/* Receives the rows of a column. */
struct parquet_sink {
	int (*each)(void *user, int64_t row, const struct parquet_cell *cell, struct err *err);
	void *user;
};

/* Calls to->each for every row of a column in a group, until it fails. ERR_USAGE names an unsupported encoding
 * or compression; ERR_CORRUPT: damaged. Messages do not name the file. */
int parquet_walk(struct parquet *p, int group, int column, const struct parquet_sink *to, struct err *err);

/* ---- parquet_records.c ---- */

/* Receives rows as JSON objects of the columns that `takes` by their name; lists and structs are kept. Members that
 * are null are left out. */
struct parquet_record_sink {
	bool (*takes)(const char *name);
	int (*each)(void *user, const char *json, size_t n, struct err *err);
	void *user;
};

/* Calls to->each for every row of a group, until it fails. Errors as of parquet_walk. */
int parquet_walk_records(struct parquet *p, int group, const struct parquet_record_sink *to, struct err *err);

#endif
