/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_inside.h: the state of a connection, shared by the files that use SQLite. */
#ifndef DPT_STORE_SQLITE_INSIDE_H
#define DPT_STORE_SQLITE_INSIDE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "web/store/db/engine.h"

struct sqlite_rows {
	struct db_rows rows; /* first member: rows are cast back to this */
	sqlite3_stmt *st;    /* NULL: not prepared yet */
};

struct sqlite_db {
	struct db db; /* first member: a connection is cast back to this */
	sqlite3 *h;
	dev_t device; /* device of the writer's file */
	ino_t inode;
	int log_fd;    /* the writer's log file; -1: not open yet */
	int wal_pages; /* in the log, not checkpointed yet */
	struct sqlite_rows rows[DB_QUERY_COUNT];
};

static inline struct sqlite_db *sqlite_db(struct db *d)
{
	return (struct sqlite_db *)(void *)d;
}

static inline struct sqlite_rows *sqlite_rows(struct db_rows *q)
{
	return (struct sqlite_rows *)(void *)q;
}

extern const struct db_engine sqlite_engine; /* db_sqlite.c */

/* Fills err from the last error of a connection; returns its code. */
int sqlite_failed(struct db *of, struct err *err, const char *doing);
void sqlite_free(struct sqlite_db *d); /* closes; NULL is fine */

int sqlite_blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err);
void sqlite_blob_close(struct blob *b);
size_t sqlite_blob_bytes(const struct blob *b);
int sqlite_blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err);

#endif
