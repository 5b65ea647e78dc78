/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c: reads a SQLite file of another program. */
#include "web/store/db/foreign.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/buf.h"
#include "tracker/mem/mem.h"

static const char *const query_text[] = {
#define SQL_QUERY(name, text) [FOREIGN_##name] = text,
#include "web/store/db/mlflow.def"
#undef SQL_QUERY
};

struct foreign_rows {
	struct foreign *of;
	sqlite3_stmt *st; /* NULL: not prepared yet */
};

struct foreign {
	sqlite3 *h;
	struct foreign_rows rows[FOREIGN_QUERY_COUNT];
};

bool foreign_is_sqlite(const char *path)
{
	static const char head[16] = "SQLite format 3";
	char bytes[sizeof(head)];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) &&
		  !memcmp(bytes, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	return is;
}

static int fail_foreign(struct foreign *f, const char *doing, struct err *err)
{
	const char *file = f->h ? sqlite3_db_filename(f->h, "main") : NULL;
	int why = f->h ? sqlite3_errcode(f->h) & 0xff : SQLITE_NOMEM;

	return err_set(err, why == SQLITE_CORRUPT || why == SQLITE_NOTADB ? ERR_CORRUPT : ERR_IO, "%s: %s: %s",
		       file ? file : "SQLite", doing, f->h ? sqlite3_errmsg(f->h) : "out of memory");
}

/* Writes the path as an SQLite URI. */
static void write_sqlite_uri(struct buf *to, const char *path, const char *how)
{
	buf_adds(to, "file:");
	for (; *path; path++) {
		if (strchr("%?#", *path))
			buf_addf(to, "%%%02X", (unsigned char)*path);
		else
			buf_addc(to, *path);
	}
	buf_adds(to, how);
}

/* Reading a file with a log needs a writable folder for the log's index. In a read-only folder (a copy) the file is
 * read without its log. */
static int open_foreign_file(struct foreign *f, const char *path, const char *how)
{
	struct buf to;
	int rc;

	buf_init(&to, SIZE_MAX);
	write_sqlite_uri(&to, path, how);
	rc = sqlite3_open_v2(to.data, &f->h, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
			     SQLITE_OPEN_PRIVATECACHE, NULL);
	buf_done(&to);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(f->h, 5000);
		sqlite3_db_config(f->h, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		rc = sqlite3_exec(f->h, "BEGIN; SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
	}
	return rc;
}

int foreign_open(struct foreign **ret, const char *path, struct err *err)
{
	struct foreign *f = mem_zalloc(sizeof(*f));
	int rc;

	rc = open_foreign_file(f, path, "?mode=ro");
	if (rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY) {
		sqlite3_close(f->h);
		f->h = NULL;
		rc = open_foreign_file(f, path, "?mode=ro&immutable=1");
	}
	if (rc != SQLITE_OK) {
		rc = fail_foreign(f, "opening", err);
		foreign_close(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void foreign_close(struct foreign *f)
{
	if (!f)
		return;
	for (int i = 0; i < FOREIGN_QUERY_COUNT; i++)
		sqlite3_finalize(f->rows[i].st);
	sqlite3_close(f->h);
	free(f);
}

bool foreign_has(struct foreign *f, const char *table)
{
	struct foreign_rows *r;
	bool has = false;

	if (foreign_start(f, &r, &(struct foreign_question){ FOREIGN_ml_table, table, 0 }, NULL))
		return false;
	while (foreign_next(r, NULL) > 0)
		has = sqlite3_column_int(r->st, 0) > 0;
	return has;
}

int foreign_start(struct foreign *f, struct foreign_rows **ret, const struct foreign_question *of, struct err *err)
{
	struct foreign_rows *r = &f->rows[of->q];
	int rc = SQLITE_OK, wants;

	r->of = f;
	if (!r->st)
		rc = sqlite3_prepare_v3(f->h, query_text[of->q], -1, SQLITE_PREPARE_PERSISTENT, &r->st, NULL);
	if (rc != SQLITE_OK)
		return fail_foreign(f, "is it a store of MLflow?", err);
	sqlite3_reset(r->st);
	wants = sqlite3_bind_parameter_count(r->st);
	if (wants && of->text)
		rc = sqlite3_bind_text(r->st, 1, of->text, -1, SQLITE_TRANSIENT);
	else if (wants)
		rc = sqlite3_bind_int64(r->st, 1, of->number);
	if (rc == SQLITE_OK && wants > 1)
		rc = sqlite3_bind_int64(r->st, 2, of->number);
	if (rc != SQLITE_OK)
		return fail_foreign(f, "binding a query", err);
	*ret = r;
	return 0;
}

int foreign_next(struct foreign_rows *r, struct err *err)
{
	int rc = sqlite3_step(r->st);

	if (rc == SQLITE_ROW)
		return 1;
	rc = rc == SQLITE_DONE ? 0 : fail_foreign(r->of, "reading", err);
	sqlite3_reset(r->st);
	return rc;
}

const char *foreign_str(struct foreign_rows *r, enum foreign_column column)
{
	const char *text = (const char *)sqlite3_column_text(r->st, column);

	return text ? text : "";
}

int64_t foreign_i64(struct foreign_rows *r, enum foreign_column column)
{
	return sqlite3_column_int64(r->st, column);
}

double foreign_f64(struct foreign_rows *r, enum foreign_column column)
{
	return foreign_null(r, column) ? NAN : sqlite3_column_double(r->st, column);
}

bool foreign_null(struct foreign_rows *r, enum foreign_column column)
{
	return sqlite3_column_type(r->st, column) == SQLITE_NULL;
}

bool foreign_number(struct foreign_rows *r, enum foreign_column column)
{
	int type = sqlite3_column_type(r->st, column);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
