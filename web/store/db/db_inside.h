/* db_inside.h: what the files of web/store/db share about a connection; nobody else sees SQLite. */
#ifndef DPT_STORE_DB_INSIDE_H
#define DPT_STORE_DB_INSIDE_H

#include <sqlite3.h>
#include <sys/types.h>

#include "web/store/db/db.h"

struct db_rows {
	sqlite3_stmt *st; /* NULL: not prepared yet */
};

struct db {
	sqlite3 *h;
	dev_t device;  /* of the writer's file */
	ino_t inode;
	int log_fd;    /* of the writer's log file; -1: not looked at yet */
	int wal_pages; /* of the log, not in the file yet */
	struct db_rows rows[DB_QUERY_COUNT];
};

#endif
