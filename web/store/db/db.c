/* SPDX-License-Identifier: Apache-2.0 */
/* db.c: calls the engine of a connection. */
#include "web/store/db/db.h"

#include "web/store/db/engine.h"

#define DB_LAST_COMMIT_BEFORE "aa25683d" /* the last one that reads stores from before DB_VERSION_FIRST */

void db_close(struct db *d)
{
	if (d)
		d->engine->close(d);
}

void db_attach(struct db *d, void *what)
{
	d->attached = what;
}

void *db_attached(const struct db *d)
{
	return d->attached;
}

int db_run(struct db *d, enum db_query q, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = d->engine->run(d, &(struct db_call){ q, fmt, &ap }, err);
	va_end(ap);
	return rc;
}

int db_run_values(struct db *d, enum db_query q, const struct db_value *v, int n, struct err *err)
{
	return d->engine->run_values(d, q, v, n, err);
}

int db_start(struct db *d, struct db_rows **ret, enum db_query q, struct err *err, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = d->engine->start(d, ret, &(struct db_call){ q, fmt, &ap }, err);
	va_end(ap);
	return rc;
}

int db_next(struct db *d, struct db_rows *q, struct err *err)
{
	return d->engine->next(d, q, err);
}

void db_stop(struct db_rows *q)
{
	if (q)
		q->engine->stop(q);
}

int db_int(struct db *d, int64_t *ret, enum db_query q, struct err *err, const char *fmt, ...)
{
	struct db_rows *r = NULL;
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = d->engine->start(d, &r, &(struct db_call){ q, fmt, &ap }, err);
	va_end(ap);
	if (!rc && (rc = db_next(d, r, err)) > 0) {
		*ret = db_i64(r, 0);
		db_stop(r);
	}
	return rc;
}

int64_t db_last_id(struct db *d)
{
	return d->engine->last_id(d);
}

int64_t db_changed(struct db *d)
{
	return d->engine->changed(d);
}

bool db_in_transaction(struct db *d)
{
	return d->engine->in_transaction(d);
}

int db_failed(struct db *d, struct err *err, const char *doing)
{
	return d ? d->engine->failed(d, err, doing) : err_nomem(err, NULL);
}

int db_begin(struct db *d, struct err *err)
{
	return d->engine->begin(d, err);
}

int db_end(struct db *d, int rc, struct err *err)
{
	if (!rc)
		rc = db_run(d, DB_commit, err, "");
	if (rc && db_in_transaction(d))
		db_run(d, DB_rollback, NULL, "");
	return rc;
}

bool db_again(struct db *d, int rc)
{
	return d->engine->again && d->engine->again(d, rc);
}

bool db_away(const struct db *d)
{
	return atomic_load(&d->away);
}

void db_hurry(struct db *d)
{
	atomic_store(&d->hurried, true);
}

void db_look(struct db *d)
{
	if (d->engine->look)
		d->engine->look(d);
}

int64_t db_session(const struct db *d)
{
	return d->session;
}

void db_rest(struct db *d)
{
	if (d->engine->rest)
		d->engine->rest(d);
}

int64_t db_wal_bytes(struct db *d)
{
	return d->engine->wal_bytes ? d->engine->wal_bytes(d) : 0;
}

void db_checkpoint(struct db *d, bool everything)
{
	if (d->engine->checkpoint)
		d->engine->checkpoint(d, everything);
}

bool db_shared(const struct db *d)
{
	return d->engine->alone != NULL;
}

struct db *db_alone(struct db *d)
{
	return d->engine->alone ? d->engine->alone(d) : d;
}

bool db_lost(struct db *d)
{
	return d->engine->lost && d->engine->lost(d);
}

void db_wait(struct db *d, int fd, int ms)
{
	if (d->engine->wait)
		d->engine->wait(d, fd, ms);
}

int64_t db_i64(struct db_rows *q, enum db_column column)
{
	return q->engine->i64(q, column);
}

int db_i32(struct db_rows *q, enum db_column column)
{
	return (int)q->engine->i64(q, column);
}

double db_f64(struct db_rows *q, enum db_column column)
{
	return q->engine->f64(q, column);
}

int64_t db_time(struct db_rows *q, enum db_column column)
{
	return q->engine->null(q, column) ? INT64_MIN : q->engine->i64(q, column);
}

const char *db_str(struct db_rows *q, enum db_column column)
{
	return q->engine->str(q, column);
}

const void *db_blob(struct db_rows *q, enum db_column column)
{
	size_t n;

	return q->engine->bytes(q, column, &n);
}

size_t db_bytes(struct db_rows *q, enum db_column column)
{
	size_t n = 0;

	q->engine->bytes(q, column, &n);
	return n;
}

bool db_null(struct db_rows *q, enum db_column column)
{
	return q->engine->null(q, column);
}

const char *db_text(struct arena *a, struct db_rows *q, enum db_column column)
{
	const char *text = db_str(q, column);

	return text ? arena_strdup(a, text) : "";
}

int blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err)
{
	return d->engine->blob_open(io, d, of, id, err);
}

void blob_close(struct blob *b)
{
	if (b)
		b->engine->blob_close(b);
}

size_t blob_bytes(const struct blob *b)
{
	return b->engine->blob_bytes(b);
}

int blob_read(struct blob *b, void *to, size_t from, size_t n, struct err *err)
{
	return b->engine->blob_read(b, to, from, n, err);
}

int db_check_version(const char *shown, int64_t version, struct err *err)
{
	if (version > db_version)
		return err_set(err, ERR_CORRUPT,
			       "%s was written by a newer dptrack (store version %lld, this one knows %d)", shown,
			       (long long)version, db_version);
	if (version < DB_VERSION_FIRST)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s was written before 0.1.0 (store version %lld): export it with commit "
			       DB_LAST_COMMIT_BEFORE " (dptrack export --events FOLDER), then dptrack import FOLDER",
			       shown, (long long)version);
	return 0;
}
