/* copy_rows.c: SQLite's online backup. */
#include "web/store/db/copy_rows.h"

#include <stdlib.h>

#include "web/store/base/no_memory.h"
#include "web/store/db/sqlite_inside.h"

struct db_copy {
	sqlite3_backup *h;
};

int copy_new(struct db_copy **ret, struct db *to, struct db *from, struct err *err)
{
	struct db_copy *c;
	int rc;

	if (db_shared(from))
		return err_set(err, ERR_UNSUPPORTED, "the store is in PostgreSQL, which has no file to copy");
	c = calloc(1, sizeof *c);
	if (!c)
		return no_memory(err);
	c->h = sqlite3_backup_init(sqlite_db(to)->h, "main", sqlite_db(from)->h, "main");
	if (!c->h) {
		rc = db_failed(to, err, "beginning a backup");
		free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void copy_free(struct db_copy *c)
{
	if (!c)
		return;
	sqlite3_backup_finish(c->h);
	free(c);
}

int copy_step(struct db_copy *c, int pages, bool *ret_done, struct err *err)
{
	int rc = sqlite3_backup_step(c->h, pages);

	*ret_done = rc == SQLITE_DONE;
	if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
		return 0;
	return err_set(err, (rc & 0xff) == SQLITE_FULL || (rc & 0xff) == SQLITE_IOERR ? ERR_NOSPC : ERR_IO,
		       "copying: %s", sqlite3_errstr(rc));
}
