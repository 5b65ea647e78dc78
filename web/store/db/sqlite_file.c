/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_file.c: files of SQLite: opens them with the settings for durability, migrates and copies them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/mem/mem.h"
#include "web/store/db/sqlite_inside.h"

#define SQL_SCRIPT(name, text) static const char script_##name[] = text;
#include "web/store/db/scripts.def"
#undef SQL_SCRIPT

static int run_sqlite_script(struct sqlite_db *d, const char *text, struct err *err, const char *doing)
{
	return sqlite3_exec(d->h, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_failed(&d->db, err, doing);
}

/* Copies the file to FILE.before-N, where N is the first missing version. */
static int copy_before_migration(struct sqlite_db *d, const char *path, int step, struct err *err)
{
	char copy[PATH_MAX], half[PATH_MAX]; /* a partial copy must not be taken for a complete one */
	int rc;

	if (snprintf(copy, sizeof(copy), "%s.before-%d", path, step) >= (int)sizeof(copy) ||
	    snprintf(half, sizeof(half), "%s.before-%d.part", path, step) >= (int)sizeof(half))
		return err_set(err, ERR_USAGE, "%s: the path is too long", path);
	if (access(copy, F_OK) == 0)
		return 0;
	unlink(half);
	rc = db_run(&d->db, DB_copy_into, err, "t", half);
	if (!rc && rename(half, copy))
		rc = err_set_errno(err, errno, "%s", copy);
	if (!rc)
		return 0;
	unlink(half);
	return err_prefix(err, "copying before an upgrade");
}

/* Creates the tables, or applies all missing migrations, in one transaction with one sync. */
static int apply_sqlite_scripts(struct sqlite_db *d, int64_t version, struct err *err)
{
	const struct db_migration *m = db_sqlite_migrations;
	int rc = db_run(&d->db, DB_begin_exclusive, err, "");

	if (rc)
		return rc;
	if (!version)
		rc = run_sqlite_script(d, script_sqlite, err, "creating the tables");
	for (; version && m->version && !rc; m++)
		if (m->version > version)
			rc = run_sqlite_script(d, m->text, err, "upgrading the store");
	rc = db_end(&d->db, rc, err);
	db_rest(&d->db);
	return rc;
}

static int migrate_sqlite(struct sqlite_db *d, const char *path, struct err *err)
{
	int64_t version = 0;
	int rc = db_int(&d->db, &version, DB_version_get, err, "");

	if (rc < 0 || version == db_version)
		return rc < 0 ? rc : 0;
	rc = version ? db_check_version(path, version, err) : 0;
	if (!rc && version)
		rc = copy_before_migration(d, path, (int)version + 1, err);
	return rc ? rc : apply_sqlite_scripts(d, version, err);
}

static int note_wal_pages(void *arg, sqlite3 *h, const char *name, int pages)
{
	struct sqlite_db *d = arg;

	(void)h;
	(void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

/* Opens a connection and sets its limits. */
static int open_sqlite(struct sqlite_db **ret, const char *path, int flags, struct err *err)
{
	struct sqlite_db *d;
	struct stat sb;
	int rc;

	if (!stat(path, &sb) && !S_ISREG(sb.st_mode))
		return err_set(err, ERR_USAGE, "%s: not a regular file: move it away, or use --db FILE", path);
	d = mem_zalloc(sizeof(*d));
	d->db.engine = &sqlite_engine;
	d->log_fd = -1;
	if (sqlite3_open_v2(path, &d->h, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL) != SQLITE_OK) {
		rc = sqlite_failed(&d->db, err, "opening");
		if (d->h)
			err_set(err, rc, "%s: %s", path, sqlite3_errmsg(d->h));
		sqlite_free(d);
		return rc;
	}
	sqlite3_extended_result_codes(d->h, 1);
	sqlite3_busy_timeout(d->h, 5000);
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_limit(d->h, SQLITE_LIMIT_LENGTH, 256 << 20);
	sqlite3_limit(d->h, SQLITE_LIMIT_ATTACHED, 1);
	*ret = d;
	return 0;
}

/* Remembers device and inode, to detect a replaced file. */
static int remember_sqlite_file(struct sqlite_db *d, const char *path, struct err *err)
{
	struct stat sb;

	if (stat(path, &sb))
		return err_set_errno(err, errno, "%s", path);
	d->device = sb.st_dev;
	d->inode = sb.st_ino;
	return 0;
}

static bool is_new_database(const char *path)
{
	struct stat sb;

	return stat(path, &sb) || !sb.st_size;
}

int sqlite_open_writer(struct db **ret, const char *path, struct err *err)
{
	struct sqlite_db *d = NULL;
	mode_t mask = umask(077);
	bool begins = is_new_database(path);
	int rc = open_sqlite(&d, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (!rc && begins)
		rc = run_sqlite_script(d, script_open_new, err, "opening");
	if (!rc)
		rc = run_sqlite_script(d, script_open_writer, err, "opening");
	if (!rc)
		rc = migrate_sqlite(d, path, err);
	if (!rc)
		rc = remember_sqlite_file(d, path, err);
	if (!rc)
		sqlite3_wal_hook(d->h, note_wal_pages, d);
	umask(mask);
	if (rc) {
		sqlite_free(d);
		return rc;
	}
	*ret = &d->db;
	return 0;
}

int sqlite_open_reader(struct db **ret, const char *path, struct err *err)
{
	struct sqlite_db *d = NULL;
	int rc = open_sqlite(&d, path, SQLITE_OPEN_READONLY, err);

	if (!rc)
		rc = run_sqlite_script(d, script_open_reader, err, "opening for reading");
	if (rc) {
		sqlite_free(d);
		return rc;
	}
	*ret = &d->db;
	return 0;
}

int db_open_alone(struct db **ret, const char *path, struct err *err)
{
	struct sqlite_db *d = NULL;
	int64_t version = 0;
	int rc = open_sqlite(&d, path, SQLITE_OPEN_READWRITE, err);

	if (!rc)
		rc = run_sqlite_script(d, script_open_alone, err, "opening for reading");
	if (!rc && (rc = db_int(&d->db, &version, DB_version_get, err, "")) > 0)
		rc = version == db_version ? 0 :
		     err_set(err, ERR_NOSPC, "%s: no space left to upgrade it to this version of dptrack", path);
	if (rc) {
		sqlite_free(d);
		return rc;
	}
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	*ret = &d->db;
	return 0;
}

int db_open_backup(struct db **ret, const char *path, struct err *err)
{
	struct sqlite_db *d = NULL;
	int rc = open_sqlite(&d, path, SQLITE_OPEN_READWRITE, err);

	if (!rc)
		rc = run_sqlite_script(d, script_open_backup, err, "opening");
	if (rc) {
		sqlite_free(d);
		return rc;
	}
	*ret = &d->db;
	return 0;
}

/* --- copies ----------------------------------------------------------------------------------------------------- */

struct db_copy {
	sqlite3_backup *h;
};

int copy_new(struct db_copy **ret, struct db *to, struct db *from, struct err *err)
{
	struct db_copy *c;
	int rc;

	if (db_shared(from))
		return err_set(err, ERR_UNSUPPORTED, "the store is in PostgreSQL, which has no file to copy");
	c = mem_zalloc(sizeof(*c));
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
