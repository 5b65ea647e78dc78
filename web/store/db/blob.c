/* blob.c: incremental reads of SQLite. */
#include "web/store/db/blob.h"

#include <stdlib.h>

#include "web/store/db/db_inside.h"

struct blob {
	struct db *d;
	sqlite3_blob *h;
};

int blob_open(struct blob **io, struct db *d, const char *table, const char *column, int64_t id, struct err *err)
{
	int rc;

	if (!*io)
		*io = calloc(1, sizeof **io);
	if (!*io)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	(*io)->d = d;
	rc = (*io)->h ? sqlite3_blob_reopen((*io)->h, id)
		: sqlite3_blob_open(d->h, "main", table, column, id, 0, &(*io)->h);
	return rc == SQLITE_OK ? 0 : db_failed(d, err, "opening a blob");
}

void blob_close(struct blob *b)
{
	if (!b)
		return;
	sqlite3_blob_close(b->h);
	free(b);
}

size_t blob_bytes(const struct blob *b)
{
	return (size_t)sqlite3_blob_bytes(b->h);
}

int blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err)
{
	return sqlite3_blob_read(b->h, to, (int)n, (int)from) == SQLITE_OK ? 0 : db_failed(b->d, err, "reading a blob");
}
