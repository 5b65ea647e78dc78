/* blob.h: reads parts of the bytes in one column of one row, inside one snapshot and on the thread of its
 * connection. On a remote database all bytes of a row are read, and following rows too when rows are read in order. */
#ifndef DPT_STORE_BLOB_H
#define DPT_STORE_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "web/store/db/db.h"

struct blob;

/* The column; rows: the query for ids ?1 to ?2 in order, with id and bytes. */
struct blob_column {
	const char *table, *column;
	enum db_query rows;
};

/* *io is NULL, or a blob of the same column, which moves to the row cheaply. After a failure blob_close is still
 * needed. */
int blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
void blob_close(struct blob *b); /* NULL is fine */

size_t blob_bytes(const struct blob *b);
int blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err);

#endif
