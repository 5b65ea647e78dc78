/* SPDX-License-Identifier: Apache-2.0 */
/* db_sqlite.c: SQLite as an engine: prepares the named queries, reads rows and blobs, maps errors. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/mem/mem.h"
#include "web/store/db/sqlite_inside.h"

static const char *const query_text[] = {
#define SQL_QUERY(name, text) [DB_##name] = text,
#include "web/store/db/queries.def"
#undef SQL_QUERY
};

static int file_errno(sqlite3_file *f)
{
	int why = 0;

	return f && f->pMethods && !f->pMethods->xFileControl(f, SQLITE_FCNTL_LAST_ERRNO, &why) ? why : 0;
}

/* errno of an I/O error; 0: unknown. After a failed commit only the file has it. */
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

/* Maps the last error of a connection to enum err_code. */
static int sqlite_error_code(sqlite3 *h)
{
	int why = system_errno(h);

	switch (sqlite3_errcode(h) & 0xff) {
	case SQLITE_FULL:
		return ERR_NOSPC;
	case SQLITE_IOERR:
		return why == ENOSPC || why == EDQUOT || why == EFBIG ? ERR_NOSPC : ERR_IO;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return ERR_DAMAGED;
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

/* What to do about a file that SQLite cannot read or write. */
static const char *sqlite_advice(struct sqlite3 *h)
{
	const int why = sqlite3_errcode(h) & 0xff;

	if (why == SQLITE_FULL)
		return "; free space on this disk, or use --db FILE on another one";
	return why == SQLITE_CORRUPT || why == SQLITE_NOTADB
		? "; restore a backup (dptrack backup --restore BACKUP), or remove the file: journals are then read "
		  "again"
		: "";
}

int sqlite_failed(struct db *of, struct err *err, const char *doing)
{
	struct sqlite_db *d = sqlite_db(of);
	const char *file = d->h ? sqlite3_db_filename(d->h, "main") : NULL;
	int code, why;

	if (!d->h)
		return err_nomem(err, NULL);
	code = sqlite_error_code(d->h);
	why = system_errno(d->h);
	file = file && *file ? file : "store";
	if ((sqlite3_errcode(d->h) & 0xff) != SQLITE_IOERR || !why)
		return err_set(err, code, "%s: %s: %s%s", file, doing, sqlite3_errmsg(d->h), sqlite_advice(d->h));
	err_set_errno(err, why, "%s: %s", file, doing);
	if (err)
		err->code = code;
	return code;
}

static struct sqlite_rows *prepare_sqlite_query(struct sqlite_db *d, enum db_query q, struct err *err)
{
	struct sqlite_rows *r = &d->rows[q];

	r->rows.engine = d->db.engine;
	if (!r->st && sqlite3_prepare_v3(d->h, query_text[q], -1, SQLITE_PREPARE_PERSISTENT, &r->st, NULL)) {
		sqlite_failed(&d->db, err, "preparing a query");
		return NULL;
	}
	return r;
}

static int bind_sqlite_value(sqlite3_stmt *st, int at, const struct db_value *v)
{
	if (v->kind == 'i' || (v->kind == 'x' && v->i != INT64_MIN))
		return sqlite3_bind_int64(st, at, v->i);
	if (v->kind == 'd')
		return sqlite3_bind_double(st, at, v->d);
	if (v->kind == 't' && v->at)
		return sqlite3_bind_text(st, at, v->at, -1, SQLITE_STATIC);
	return v->kind == 'b' ? sqlite3_bind_blob64(st, at, v->at, v->n, SQLITE_STATIC) : sqlite3_bind_null(st, at);
}

static int bind_sqlite_values(sqlite3_stmt *st, const char *fmt, va_list ap)
{
	int at, rc = SQLITE_OK;

	for (at = 1; *fmt && rc == SQLITE_OK; fmt++, at++) {
		struct db_value v = { .kind = *fmt };

		if (*fmt == 'i' || *fmt == 'x')
			v.i = va_arg(ap, int64_t);
		else if (*fmt == 'd')
			v.d = va_arg(ap, double);
		else
			v.at = va_arg(ap, const void *);
		if (*fmt == 'b')
			v.n = va_arg(ap, size_t);
		rc = bind_sqlite_value(st, at, &v);
	}
	return rc;
}

static int sqlite_next(struct db *d, struct db_rows *q, struct err *err)
{
	sqlite3_stmt *st = sqlite_rows(q)->st;
	int rc = st ? sqlite3_step(st) : SQLITE_DONE;

	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : sqlite_failed(d, err, "reading or writing");
	sqlite3_reset(st);
	return rc;
}

static void sqlite_stop(struct db_rows *q)
{
	sqlite3_reset(sqlite_rows(q)->st);
}

static int sqlite_start(struct db *d, struct db_rows **ret, const struct db_call *c, struct err *err)
{
	struct sqlite_rows *r = prepare_sqlite_query(sqlite_db(d), c->q, err);

	if (!r)
		return err ? err->code : ERR_IO;
	sqlite3_reset(r->st);
	if (r->st && bind_sqlite_values(r->st, c->fmt, *c->values) != SQLITE_OK)
		return sqlite_failed(d, err, "binding a query");
	*ret = &r->rows;
	return 0;
}

static int sqlite_run(struct db *d, const struct db_call *c, struct err *err)
{
	struct db_rows *r = NULL;
	int rc = sqlite_start(d, &r, c, err);

	if (!rc && (rc = sqlite_next(d, r, err)) > 0)
		sqlite_stop(r);
	return rc < 0 ? rc : 0;
}

static int sqlite_run_values(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err)
{
	struct sqlite_rows *r = prepare_sqlite_query(sqlite_db(d), q, err);
	int at, rc;

	if (!r)
		return err ? err->code : ERR_IO;
	sqlite3_reset(r->st);
	for (at = 0; at < n; at++)
		if (bind_sqlite_value(r->st, at + 1, &v[at]) != SQLITE_OK)
			return sqlite_failed(d, err, "binding a query");
	rc = sqlite_next(d, &r->rows, err);
	if (rc > 0)
		sqlite_stop(&r->rows);
	return rc < 0 ? rc : 0;
}

/* What happened to the file at the path; NULL: nothing. */
static const char *check_file_fate(const struct sqlite_db *d, const char *file)
{
	struct stat sb;

	if (stat(file, &sb))
		return errno == ENOENT ? "deleted" : NULL;
	return sb.st_dev == d->device && sb.st_ino == d->inode ? NULL : "replaced";
}

/* For the log the link count decides, because a new reader creates another file of that name. */
static int check_file_in_use(struct sqlite_db *d, struct err *err)
{
	const char *file = sqlite3_db_filename(d->h, "main"), *log = sqlite3_filename_wal(file), *lost = NULL, *fate;
	struct stat sb;

	if (d->log_fd < 0)
		d->log_fd = open(log, O_RDONLY | O_CLOEXEC);
	if (d->log_fd >= 0 && !fstat(d->log_fd, &sb) && !sb.st_nlink)
		lost = log;
	fate = check_file_fate(d, file);
	if (fate)
		lost = file;
	return !lost ? 0 : err_set(err, ERR_IO,
				   "%s was %s while in use: nothing more can be stored: stop this process, then "
				   "run dptrack doctor", lost, fate ? fate : "deleted");
}

static int sqlite_begin(struct db *d, struct err *err)
{
	int rc = check_file_in_use(sqlite_db(d), err);

	return rc ? rc : db_run(d, DB_begin, err, "");
}

static int64_t sqlite_last_id(struct db *d)
{
	return sqlite3_last_insert_rowid(sqlite_db(d)->h);
}

static int64_t sqlite_changed(struct db *d)
{
	return sqlite3_changes64(sqlite_db(d)->h);
}

static bool sqlite_in_transaction(struct db *d)
{
	return !sqlite3_get_autocommit(sqlite_db(d)->h);
}

static int64_t sqlite_i64(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_int64(sqlite_rows(q)->st, column);
}

static bool sqlite_null(struct db_rows *q, enum db_column column)
{
	return sqlite3_column_type(sqlite_rows(q)->st, column) == SQLITE_NULL;
}

static double sqlite_f64(struct db_rows *q, enum db_column column)
{
	return sqlite_null(q, column) ? NAN : sqlite3_column_double(sqlite_rows(q)->st, column);
}

static const char *sqlite_str(struct db_rows *q, enum db_column column)
{
	return (const char *)sqlite3_column_text(sqlite_rows(q)->st, column);
}

static const void *sqlite_bytes(struct db_rows *q, enum db_column column, size_t *ret_n)
{
	const void *bytes = sqlite3_column_blob(sqlite_rows(q)->st, column);

	*ret_n = (size_t)sqlite3_column_bytes(sqlite_rows(q)->st, column);
	return bytes;
}

static void sqlite_rest(struct db *d)
{
	sqlite3_db_release_memory(sqlite_db(d)->h);
}

static int64_t sqlite_wal_bytes(struct db *d)
{
	return (int64_t)sqlite_db(d)->wal_pages * DB_PAGE_BYTES;
}

static void sqlite_checkpoint(struct db *of, bool everything)
{
	struct sqlite_db *d = sqlite_db(of);
	int pages = 0, done = 0, how = everything ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

	sqlite3_wal_checkpoint_v2(d->h, NULL, how, &pages, &done);
	d->wal_pages = pages > done ? pages - done : 0;
}

/* Other versions can corrupt a file that two connections write at once. */
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

/* --- blobs ---------------------------------------------------------------------------------------------------- */

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
		b = mem_zalloc(sizeof(*b));
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

/* --- the engine ------------------------------------------------------------------------------------------------- */

void sqlite_free(struct sqlite_db *d)
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

static void sqlite_close(struct db *d)
{
	sqlite_free(sqlite_db(d));
}

const struct db_engine sqlite_engine = {
	.close = sqlite_close,
	.run = sqlite_run,
	.run_values = sqlite_run_values,
	.start = sqlite_start,
	.next = sqlite_next,
	.stop = sqlite_stop,
	.i64 = sqlite_i64,
	.f64 = sqlite_f64,
	.str = sqlite_str,
	.bytes = sqlite_bytes,
	.null = sqlite_null,
	.last_id = sqlite_last_id,
	.changed = sqlite_changed,
	.in_transaction = sqlite_in_transaction,
	.failed = sqlite_failed,
	.begin = sqlite_begin,
	.rest = sqlite_rest,
	.wal_bytes = sqlite_wal_bytes,
	.checkpoint = sqlite_checkpoint,
	.blob_open = sqlite_blob_open,
	.blob_close = sqlite_blob_close,
	.blob_bytes = sqlite_blob_bytes,
	.blob_read = sqlite_blob_read,
};
