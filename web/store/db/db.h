/* db.h: one SQLite connection with the named queries of schema/sql, prepared when first used. Private to web/store.
 * A connection is used by one thread at a time. Formats of binding: i int64_t, x int64_t (INT64_MIN becomes NULL),
 * d double (NaN becomes NULL), t const char * (NULL becomes NULL), b const void * and size_t. */
#ifndef DPT_STORE_DB_H
#define DPT_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "web/store/points/sum.h"

enum db_query {
#define SQL_QUERY(name, text) DB_##name,
#include "web/store/db/queries.def"
#undef SQL_QUERY
	DB_QUERY_COUNT
};

struct db;

#define DB_PAGE_BYTES 4096

/* The read-write connection makes the file and brings it to the newest version (one copy FILE.before-N beside it
 * first, unless it was empty). */
int db_open_writer(struct db **ret, const char *path, struct err *err);
int db_open_reader(struct db **ret, const char *path, struct err *err);
int db_open_backup(struct db **ret, const char *path, struct err *err); /* an empty file, to be filled by a backup */
void db_close(struct db *d); /* NULL is fine */
sqlite3 *db_handle(struct db *d);

/* Runs a query that gives no rows. */
int db_run(struct db *d, enum db_query q, struct err *err, const char *fmt, ...);

/* Binds; db_next then steps: 1 a row, 0 the end (the statement is reset), negative failed. */
int db_start(struct db *d, sqlite3_stmt **ret, enum db_query q, struct err *err, const char *fmt, ...);
int db_next(struct db *d, sqlite3_stmt *st, struct err *err);
void db_stop(sqlite3_stmt *st); /* before the end was reached */

/* The first column of the first row; 1, 0 when there is no row (*ret untouched), negative failed. */
int db_int(struct db *d, int64_t *ret, enum db_query q, struct err *err, const char *fmt, ...);

/* ERR_IO when somebody deleted the file or its log while they are open: what is written from then on would be lost. */
int db_still_there(struct db *d, struct err *err);

int64_t db_last_id(struct db *d);
int db_failed(struct db *d, struct err *err, const char *doing); /* fills err from the connection's last error */

/* Columns. Text lives in the arena; NULL gives "". Summaries take 13 columns in the order of the tables. */
const char *db_text(struct arena *a, sqlite3_stmt *st, int column);
int64_t db_time(sqlite3_stmt *st, int column); /* NULL gives INT64_MIN */
double db_real(sqlite3_stmt *st, int column);  /* NULL gives NaN */
void db_sum(sqlite3_stmt *st, int column, struct sum *ret);
#define DB_SUM_FMT "iiddddiiiiddi"
#define DB_SUM_ARGS(s)                                                                                            \
	(int64_t)(s)->count, (int64_t)(s)->nonfinite, (s)->first.value, (s)->last.value, (s)->min, (s)->max,        \
		(s)->first.step, (s)->last.step, (s)->min_step, (s)->max_step, (s)->first.time, (s)->last.time,    \
		(s)->nonfinite_step

#endif
