/* db.c: opens SQLite as reliability needs it, migrates, prepares the named queries, maps its errors to ours. */
#include "web/store/db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "web/store/db/db_inside.h"

static const char *const query_text[] = {
#define SQL_QUERY(name, text) [DB_##name] = text,
#include "web/store/db/queries.def"
#undef SQL_QUERY
};

static const struct {
	int number;
	const char *text;
} migrations[] = {
#define SQL_MIGRATION(number, text) { number, text },
#define SQL_SCRIPT(name, text)
#include "web/store/db/scripts.def"
#undef SQL_MIGRATION
#undef SQL_SCRIPT
};

#define SQL_MIGRATION(number, text)
#define SQL_SCRIPT(name, text) static const char script_##name[] = text;
#include "web/store/db/scripts.def"
#undef SQL_MIGRATION
#undef SQL_SCRIPT

#define MIGRATION_COUNT (sizeof migrations / sizeof migrations[0])

static int file_errno(sqlite3_file *f)
{
	int why = 0;

	return f && f->pMethods && !f->pMethods->xFileControl(f, SQLITE_FCNTL_LAST_ERRNO, &why) ? why : 0;
}

/* Of an input or output error; 0 when it is not known. A failed commit leaves it with the file alone. */
static int system_errno(sqlite3 *h)
{
	sqlite3_file *file = NULL, *log = NULL;
	int why = sqlite3_system_errno(h);

	if (why || (sqlite3_errcode(h) & 0xff) != SQLITE_IOERR)
		return why;
	sqlite3_file_control(h, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	sqlite3_file_control(h, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	why = file_errno(log);
	return why ? why : file_errno(file);
}

static int code_of(sqlite3 *h)
{
	int why = system_errno(h);

	switch (sqlite3_errcode(h) & 0xff) {
	case SQLITE_FULL:
		return ERR_NOSPC;
	case SQLITE_IOERR:
		return why == ENOSPC || why == EDQUOT || why == EFBIG ? ERR_NOSPC : ERR_IO;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return ERR_CORRUPT;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_BUSY;
	case SQLITE_NOMEM:
		return ERR_NOMEM;
	case SQLITE_INTERRUPT:
		return ERR_CANCELED;
	case SQLITE_TOOBIG:
		return ERR_LIMIT;
	default:
		return ERR_IO;
	}
}

int db_failed(struct db *d, struct err *err, const char *doing)
{
	const char *file = d && d->h ? sqlite3_db_filename(d->h, "main") : NULL;
	int code, why;

	if (!d || !d->h)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	code = code_of(d->h);
	why = system_errno(d->h);
	file = file && *file ? file : "store";
	if ((sqlite3_errcode(d->h) & 0xff) != SQLITE_IOERR || !why)
		return err_set(err, code, "%s: %s: %s", file, doing, sqlite3_errmsg(d->h));
	err_set_errno(err, why, "%s: %s", file, doing);
	if (err)
		err->code = code;
	return code;
}

static int script(struct db *d, const char *text, struct err *err, const char *doing)
{
	return sqlite3_exec(d->h, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_failed(d, err, doing);
}

static struct db_rows *prepared(struct db *d, enum db_query q, struct err *err)
{
	struct db_rows *r = &d->rows[q];

	if (!r->st && sqlite3_prepare_v3(d->h, query_text[q], -1, SQLITE_PREPARE_PERSISTENT, &r->st, NULL)) {
		db_failed(d, err, "preparing a query");
		return NULL;
	}
	return r;
}

static int bind(sqlite3_stmt *st, const char *fmt, va_list ap)
{
	int at, rc = SQLITE_OK;

	for (at = 1; *fmt && rc == SQLITE_OK; fmt++, at++) {
		if (*fmt == 'i') {
			rc = sqlite3_bind_int64(st, at, va_arg(ap, int64_t));
		} else if (*fmt == 'x') {
			int64_t v = va_arg(ap, int64_t);

			rc = v == INT64_MIN ? sqlite3_bind_null(st, at) : sqlite3_bind_int64(st, at, v);
		} else if (*fmt == 'd') {
			rc = sqlite3_bind_double(st, at, va_arg(ap, double));
		} else if (*fmt == 't') {
			const char *text = va_arg(ap, const char *);

			rc = text ? sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC) : sqlite3_bind_null(st, at);
		} else {
			const void *bytes = va_arg(ap, const void *);

			rc = sqlite3_bind_blob64(st, at, bytes, va_arg(ap, size_t), SQLITE_STATIC);
		}
	}
	return rc;
}

int db_next(struct db *d, struct db_rows *q, struct err *err)
{
	int rc = sqlite3_step(q->st);

	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : db_failed(d, err, "reading or writing");
	sqlite3_reset(q->st);
	return rc;
}

void db_stop(struct db_rows *q)
{
	if (q)
		sqlite3_reset(q->st);
}

static int start(struct db *d, struct db_rows **ret, enum db_query q, struct err *err, const char *fmt, va_list ap)
{
	struct db_rows *r = prepared(d, q, err);

	if (!r)
		return err ? err->code : ERR_IO;
	sqlite3_reset(r->st);
	if (bind(r->st, fmt, ap) != SQLITE_OK)
		return db_failed(d, err, "binding a query");
	*ret = r;
	return 0;
}

int db_start(struct db *d, struct db_rows **ret, enum db_query q, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = start(d, ret, q, err, fmt, ap);
	va_end(ap);
	return rc;
}

int db_run(struct db *d, enum db_query q, struct err *err, const char *fmt, ...)
{
	struct db_rows *r = NULL;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = start(d, &r, q, err, fmt, ap);
	va_end(ap);
	if (!rc && (rc = db_next(d, r, err)) > 0)
		db_stop(r);
	return rc < 0 ? rc : 0;
}

int db_int(struct db *d, int64_t *ret, enum db_query q, struct err *err, const char *fmt, ...)
{
	struct db_rows *r = NULL;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = start(d, &r, q, err, fmt, ap);
	va_end(ap);
	if (!rc && (rc = db_next(d, r, err)) > 0) {
		*ret = sqlite3_column_int64(r->st, 0);
		db_stop(r);
	}
	return rc;
}

/* What lies at the path now. */
static const char *fate_of_file(struct db *d, const char *file)
{
	struct stat sb;

	if (stat(file, &sb))
		return errno == ENOENT ? "deleted" : NULL;
	return sb.st_dev == d->device && sb.st_ino == d->inode ? NULL : "replaced";
}

/* Of the log a link count tells: a new reader makes another one of its name. */
int db_still_there(struct db *d, struct err *err)
{
	const char *file = sqlite3_db_filename(d->h, "main"), *log = sqlite3_filename_wal(file), *lost = NULL, *fate;
	struct stat sb;

	if (d->log_fd < 0)
		d->log_fd = open(log, O_RDONLY | O_CLOEXEC);
	if (d->log_fd >= 0 && !fstat(d->log_fd, &sb) && !sb.st_nlink)
		lost = log;
	fate = fate_of_file(d, file);
	if (fate)
		lost = file;
	return !lost ? 0 : err_set(err, ERR_IO,
				   "%s was %s while it is in use: nothing more can be stored; stop this process, then "
				   "see what dptrack doctor says", lost, fate ? fate : "deleted");
}

int64_t db_last_id(struct db *d)
{
	return sqlite3_last_insert_rowid(d->h);
}

int64_t db_changed(struct db *d)
{
	return sqlite3_changes64(d->h);
}

bool db_in_transaction(struct db *d)
{
	return !sqlite3_get_autocommit(d->h);
}

int64_t db_i64(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_int64(q->st, column);
}

int db_i32(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_int(q->st, column);
}

double db_f64(struct db_rows *q, enum db_column column)
{
	return db_null(q, column) ? NAN : sqlite3_column_double(q->st, column);
}

int64_t db_time(struct db_rows *q, enum db_column column)
{
	return db_null(q, column) ? INT64_MIN : sqlite3_column_int64(q->st, column);
}

const char *db_str(struct db_rows *q, enum db_column column)
{
	return (const char *)sqlite3_column_text(q->st, column);
}

const void *db_blob(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_blob(q->st, column);
}

size_t db_bytes(struct db_rows *q, enum db_column column)
{
	return (size_t)sqlite3_column_bytes(q->st, column);
}

bool db_null(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_type(q->st, column) == SQLITE_NULL;
}

const char *db_text(struct arena *a, struct db_rows *q, enum db_column column)
{
	const char *text = db_str(q, column);
	const char *copy = text ? arena_strdup(a, text) : "";

	return copy ? copy : "";
}

static int on_wal(void *arg, sqlite3 *h, const char *name, int pages)
{
	struct db *d = arg;

	(void)h;
	(void)name;
	d->wal_pages = pages;
	return SQLITE_OK;
}

int64_t db_wal_bytes(struct db *d)
{
	return (int64_t)d->wal_pages * DB_PAGE_BYTES;
}

void db_checkpoint(struct db *d, bool everything)
{
	int pages = 0, done = 0, how = everything ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

	sqlite3_wal_checkpoint_v2(d->h, NULL, how, &pages, &done);
	d->wal_pages = pages > done ? pages - done : 0;
}

/* Older versions can damage a file to which two connections write at once. */
const char *db_engine(enum db_flaw *ret)
{
	int n = sqlite3_libversion_number();
	bool fixed = n >= 3051003 || (n >= 3050007 && n < 3051000) || (n >= 3044006 && n < 3045000);

	if (ret)
		*ret = !sqlite3_threadsafe() ? DB_NO_THREADS : fixed ? DB_FLAWLESS : DB_ONE_CONNECTION;
	return sqlite3_libversion();
}

uint64_t db_memory_bytes(void)
{
	return (uint64_t)sqlite3_memory_used();
}

/* As it is, beside it: FILE.before-N, N being the first step that it lacks. */
static int keep_copy(struct db *d, const char *path, int step, struct err *err)
{
	char copy[PATH_MAX], half[PATH_MAX]; /* half a copy must not pass for one the next time */
	int rc;

	if (snprintf(copy, sizeof copy, "%s.before-%d", path, step) >= (int)sizeof copy ||
	    snprintf(half, sizeof half, "%s.before-%d.part", path, step) >= (int)sizeof half)
		return err_set(err, ERR_USAGE, "%s: the path is too long", path);
	if (access(copy, F_OK) == 0)
		return 0;
	unlink(half);
	rc = db_run(d, DB_copy_into, err, "t", half);
	if (!rc && rename(half, copy))
		rc = err_set_errno(err, errno, "%s", copy);
	if (!rc)
		return 0;
	unlink(half);
	return err_prefix(err, "copying before an upgrade");
}

static int migrate(struct db *d, const char *path, struct err *err)
{
	int64_t version = 0;
	bool kept = false;
	size_t i;
	int rc;

	if ((rc = db_int(d, &version, DB_version_get, err, "")) < 0)
		return rc;
	if (version > migrations[MIGRATION_COUNT - 1].number)
		return err_set(err, ERR_CORRUPT,
			       "%s was written by a newer dptrack (store version %lld, this one knows %d)", path,
			       (long long)version, migrations[MIGRATION_COUNT - 1].number);
	for (i = 0; i < MIGRATION_COUNT; i++) {
		if (migrations[i].number <= version)
			continue;
		if (version > 0 && !kept && (rc = keep_copy(d, path, migrations[i].number, err)))
			return rc;
		kept = true;
		if ((rc = db_run(d, DB_begin_exclusive, err, "")))
			return rc;
		rc = script(d, migrations[i].text, err, "upgrading the store");
		if (!rc)
			rc = db_run(d, DB_commit, err, "");
		if (rc) {
			db_run(d, DB_rollback, NULL, "");
			return rc;
		}
	}
	return 0;
}

static int open_any(struct db **ret, const char *path, int flags, struct err *err)
{
	struct db *d = calloc(1, sizeof *d);
	int rc;

	if (!d)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	d->log_fd = -1;
	if (sqlite3_open_v2(path, &d->h, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL) != SQLITE_OK) {
		rc = db_failed(d, err, "opening");
		db_close(d);
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

/* By which another file of the same name is noticed. */
static int know_file(struct db *d, const char *path, struct err *err)
{
	struct stat sb;

	if (stat(path, &sb))
		return err_set_errno(err, errno, "%s", path);
	d->device = sb.st_dev;
	d->inode = sb.st_ino;
	return 0;
}

int db_open_writer(struct db **ret, const char *path, struct err *err)
{
	struct db *d = NULL;
	mode_t mask = umask(077);
	int rc = open_any(&d, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (!rc)
		rc = script(d, script_open_writer, err, "opening");
	if (!rc)
		rc = migrate(d, path, err);
	if (!rc)
		rc = know_file(d, path, err);
	if (!rc)
		sqlite3_wal_hook(d->h, on_wal, d);
	umask(mask);
	if (rc) {
		db_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

int db_open_reader(struct db **ret, const char *path, struct err *err)
{
	struct db *d = NULL;
	int rc = open_any(&d, path, SQLITE_OPEN_READONLY, err);

	if (!rc)
		rc = script(d, script_open_reader, err, "opening for reading");
	if (rc) {
		db_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

int db_open_alone(struct db **ret, const char *path, struct err *err)
{
	struct db *d = NULL;
	int64_t version = 0;
	int rc = open_any(&d, path, SQLITE_OPEN_READWRITE, err);

	if (!rc)
		rc = script(d, script_open_alone, err, "opening for reading");
	if (!rc && (rc = db_int(d, &version, DB_version_get, err, "")) > 0)
		rc = version == migrations[MIGRATION_COUNT - 1].number ? 0 :
		     err_set(err, ERR_NOSPC, "%s: no space left to bring it to this version of dptrack", path);
	if (rc) {
		db_close(d);
		return rc;
	}
	sqlite3_db_config(d->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	*ret = d;
	return 0;
}

int db_open_backup(struct db **ret, const char *path, struct err *err)
{
	struct db *d = NULL;
	int rc = open_any(&d, path, SQLITE_OPEN_READWRITE, err);

	if (!rc)
		rc = script(d, script_open_backup, err, "opening");
	if (rc) {
		db_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void db_close(struct db *d)
{
	int i;

	if (!d)
		return;
	for (i = 0; i < DB_QUERY_COUNT; i++)
		sqlite3_finalize(d->rows[i].st);
	sqlite3_close(d->h);
	if (d->log_fd >= 0)
		close(d->log_fd);
	free(d);
}
