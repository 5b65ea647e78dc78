/* blob.h: parts of the bytes in one column of one row, without reading the rest of them. Used as its connection is,
 * inside one snapshot. Knows nothing of what the bytes mean. Where a row costs a round trip all its bytes are read, and
 * more rows with it when rows are asked for in their order. */
#ifndef DPT_STORE_BLOB_H
#define DPT_STORE_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "web/store/db/db.h"

struct blob;

/* Where it lies; rows: the query of the ids from ?1 to ?2 in their order: the id, then all bytes. */
struct blob_column {
	const char *table, *column;
	enum db_query rows;
};

/* *io is NULL or a blob of the same column, which moves to the row, cheaply. On failure it still wants blob_close. */
int blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
void blob_close(struct blob *b); /* NULL is fine */

size_t blob_bytes(const struct blob *b);
int blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err);

#endif
