/* parquet.h: columns of a Parquet file, row group by row group (https://github.com/apache/parquet-format): flat ones
 * and those inside structs, of numbers and of bytes, in the encodings PLAIN, dictionary, DELTA_BINARY_PACKED and
 * DELTA_LENGTH_BYTE_ARRAY. Nothing is believed: counts have a maximum, every value ends within its page. Knows no
 * pictures. */
#ifndef DPT_DATA_PARQUET_H
#define DPT_DATA_PARQUET_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"

#define PARQUET_NAME_MAX 256
#define PARQUET_ROWS_MAX ((int64_t)1 << 24) /* of a row group */

struct parquet;

enum parquet_type { PARQUET_NUMBER, PARQUET_BYTES, PARQUET_OTHER };

struct parquet_column {
	char name[PARQUET_NAME_MAX]; /* "image.bytes": members of structs behind a dot */
	enum parquet_type type;
	bool repeated;		     /* lists are not read */
};

/* Whether a file that begins so is one. */
bool parquet_probe(const void *head);

/* ERR_USAGE: it is none, or none that is whole; ERR_IO: it cannot be read. Both name the file. The source stays the
 * caller's until close. */
int parquet_open(struct parquet **ret, const struct byte_source *file, struct err *err);
void parquet_close(struct parquet *p); /* NULL is fine */

int parquet_columns(const struct parquet *p);
const struct parquet_column *parquet_column(const struct parquet *p, int column);
int parquet_find(const struct parquet *p, const char *name); /* -1: none */
int parquet_groups(const struct parquet *p);
int64_t parquet_rows(const struct parquet *p, int group);

struct parquet_cell {
	bool null;
	int64_t number;
	const unsigned char *bytes; /* n of them, until the next cell */
	uint32_t n;
	uint64_t offset; /* where the bytes lie in the file, or (packed) the page with them */
	uint32_t packed; /* 0, or where they lie in the page: as struct sample has it */
};

/* Calls each for every row of a column in a group, until it fails. ERR_USAGE: it is kept in a way that is not read,
 * which is named; ERR_CORRUPT: it is damaged. Texts do not name the file. */
int parquet_walk(struct parquet *p, int group, int column,
		 int (*each)(void *user, int64_t row, const struct parquet_cell *cell, struct err *err), void *user,
		 struct err *err);

#endif
