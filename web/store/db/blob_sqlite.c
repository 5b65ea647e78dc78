/* blob_sqlite.c: incremental reads of SQLite blobs. */
#include "web/store/db/sqlite_inside.h"

#include <stdlib.h>

#include "web/store/base/no_memory.h"

struct sqlite_blob {
	struct blob blob; /* first member: a blob is cast back to this */
	struct db *d;
	sqlite3_blob *h;
};

int sqlite_blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err)
{
	struct sqlite_blob *b = (struct sqlite_blob *)(void *)*io;
	int rc;

	if (!b) {
		b = calloc(1, sizeof *b);
		if (!b)
			return no_memory(err);
		b->blob.engine = d->engine;
		*io = &b->blob;
	}
	b->d = d;
	rc = b->h ? sqlite3_blob_reopen(b->h, id)
		: sqlite3_blob_open(sqlite_db(d)->h, "main", of->table, of->column, id, 0, &b->h);
	return rc == SQLITE_OK ? 0 : db_failed(d, err, "opening a blob");
}

void sqlite_blob_close(struct blob *blob)
{
	struct sqlite_blob *b = (struct sqlite_blob *)(void *)blob;

	sqlite3_blob_close(b->h);
	free(b);
}

size_t sqlite_blob_bytes(const struct blob *b)
{
	return (size_t)sqlite3_blob_bytes(((const struct sqlite_blob *)(const void *)b)->h);
}

int sqlite_blob_read(struct blob *blob, void *to, size_t from, size_t n, struct err *err)
{
	struct sqlite_blob *b = (struct sqlite_blob *)(void *)blob;

	return sqlite3_blob_read(b->h, to, (int)n, (int)from) == SQLITE_OK ? 0 : db_failed(b->d, err, "reading a blob");
}
